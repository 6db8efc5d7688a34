"""Judging: which change is concurrent, who wins, and the batch as core judges it."""
