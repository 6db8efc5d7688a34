"""The pure algebra of replication: values in, values out; no Spark, no clock, no environment."""
