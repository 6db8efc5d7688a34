"""The commit protocol: plans and commits, where a hub may die, and what it finds afterwards."""
