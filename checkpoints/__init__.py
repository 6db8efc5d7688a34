"""Durable state in Delta tables and the protocol by which it is committed."""
