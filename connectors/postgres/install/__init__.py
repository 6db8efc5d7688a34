"""The agent's own schema in the replica's database."""
