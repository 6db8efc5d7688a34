"""Who carries the rows of a batch: Spark's source, the driver or the executors, the sinks."""
