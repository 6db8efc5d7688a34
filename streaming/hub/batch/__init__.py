"""The flow of a batch, and what a hub keeps in memory between two of them."""
