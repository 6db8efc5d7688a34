"""Vectors of the origin systems, and what runs them: `python -m tests.vectors FILE...`."""
