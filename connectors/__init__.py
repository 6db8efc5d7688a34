"""Connections to the outside: Kafka, the wire format and the replica agents."""
