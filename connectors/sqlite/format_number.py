"""The format of the agent's tables in a SQLite database."""

FORMAT = 1
"""An agent refuses a database of a larger one."""
