"""Comparing two sides: digests of key ranges, narrowed down to the rows that differ."""
