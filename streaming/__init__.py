"""The replication hub: a pure core, the stages of one batch, and the service around them."""
