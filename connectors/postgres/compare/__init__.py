"""A PostgreSQL database as one side of a comparison: digests computed by the server."""
