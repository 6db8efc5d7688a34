"""The demonstration: three replicas that conflict, one hub, and a verdict computed without it."""
