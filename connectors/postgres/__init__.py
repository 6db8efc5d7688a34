"""A PostgreSQL database as a replica."""
