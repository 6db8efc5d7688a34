"""What a server has of the replicated tables, and its schema as a document for people."""
