"""A SQLite database as a replica: capture, journal, apply, restart."""
