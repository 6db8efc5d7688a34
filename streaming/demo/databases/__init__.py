"""The databases of a demonstration: files of SQLite, and servers of PostgreSQL."""
