"""Compares the rows of two replicas, or of a replica and the hub, and reports what differs."""
