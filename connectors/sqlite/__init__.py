"""A SQLite database as a replica: capture, journal, apply, restart, and its agent's process."""
