"""Values: change, row, table, record, state. Nothing is decided here."""
