"""Durable state in Delta tables: the tables, their schemas, and the store that appends to them."""
