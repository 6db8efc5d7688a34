"""Tests of the pure core: laws by hypothesis, cases by table."""
