"""Whole hubs on a real broker, a real Spark and real Delta tables."""
