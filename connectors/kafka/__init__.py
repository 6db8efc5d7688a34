"""Kafka: clients and their options, topics, the hub's producer, a broker for tests and demos."""
