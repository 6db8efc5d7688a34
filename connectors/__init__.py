"""How changes come and go: Kafka, the wire format, the replica agents."""
