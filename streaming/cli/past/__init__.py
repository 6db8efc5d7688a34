"""Commands that ask the past: replay, verify, SQL, and rows as they stood."""
