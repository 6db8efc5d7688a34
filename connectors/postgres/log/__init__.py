"""The database's own log as the journal: read by logical replication, and numbered."""
