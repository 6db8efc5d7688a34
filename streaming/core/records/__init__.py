"""From the bytes of a record to its value: the grammar, and what is wrong with a record."""
