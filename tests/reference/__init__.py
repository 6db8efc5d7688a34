"""What the columns are held against: the same rules, one change at a time."""
