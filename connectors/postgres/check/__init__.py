"""Whether a PostgreSQL database can be a replica, and what it holds; nothing is changed."""
