"""The replica agent for SQLite: captures a database's own writes and applies those of others."""
