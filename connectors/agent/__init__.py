"""A replica's agent for any database: it publishes captured changes and applies the hub's batches.

Nothing here imports a database or its connector; a connector implements `contract.ReplicaStore`.
"""
