"""The hub on a Spark standalone cluster of real processes: `make test-cluster`, not in the gate."""
