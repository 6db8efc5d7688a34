"""The hub as a process: how it starts, what it runs, and how it ends."""
