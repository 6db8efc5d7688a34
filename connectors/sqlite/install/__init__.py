"""The agent's own tables and triggers: made, checked, emptied, removed."""
