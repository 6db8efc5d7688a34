"""The demonstration: three replicas that collide, one hub, and a verdict that does not ask it."""
