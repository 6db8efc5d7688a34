"""Fuzzing programs: long, with a seed that repeats a run."""
