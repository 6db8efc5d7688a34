"""What a hub serves over HTTP: it reads facts, and changes nothing.

It runs in a thread of the hub's driver. Nothing here waits for a batch, for Kafka or for Spark, and
no failure here ends the hub.
"""
