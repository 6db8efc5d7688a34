"""Facts about the epoch number matrix: its rows, what sets them, and what packets are missing."""
