"""Tests of a whole hub: the real process, replicas that follow a script, and a verdict."""
