"""How the hub, its replicas and its tables are: the facts of `status`."""
