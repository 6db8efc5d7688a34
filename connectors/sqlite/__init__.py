"""A SQLite database as a replica: its store, its agent's process, and what people ask of it."""
