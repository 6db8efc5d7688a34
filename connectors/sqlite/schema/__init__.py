"""What a user's tables declare, and what of it prevents or limits replication."""
