"""Row filters: a condition in SQL, read with its table and evaluated on Arrow columns."""
