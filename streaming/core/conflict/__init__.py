"""Judging one change on one row: whether it is concurrent, and who wins."""
