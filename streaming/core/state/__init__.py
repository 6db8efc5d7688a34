"""What the hub knows between two batches: replicas, agreements, open transactions, tables."""
