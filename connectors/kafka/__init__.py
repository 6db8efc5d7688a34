"""Kafka: clients and their options, topics, the hub's producer."""
