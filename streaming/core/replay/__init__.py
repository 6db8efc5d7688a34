"""Judging the past again: what of a record is a fact, how two records differ, what rows follow."""
