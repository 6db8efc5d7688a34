"""The journal: what is captured, numbered and published of what was written here."""
