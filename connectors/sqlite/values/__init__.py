"""A column's value in SQLite, in a captured image, and on the wire."""
