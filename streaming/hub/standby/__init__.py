"""A hub that waits to take over: it reads as the hub reads, and writes nothing."""
