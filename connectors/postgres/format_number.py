"""The format of the agent's own tables in a PostgreSQL database."""

FORMAT = 1
"""The format of the tables in the schema `slackwater`; any change raises it."""
