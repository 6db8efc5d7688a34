"""The number of the state's format, alone: whoever only names it imports no tables."""

FORMAT = 1
"""The format number of this state; a hub refuses state of a larger one."""
