"""Reads of the state: as it is, as it was, and what a batch or a resync asks of it."""
