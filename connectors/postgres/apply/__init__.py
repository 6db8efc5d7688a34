"""Applies what the hub sends: a batch is one local transaction, and no user is its victim."""
