"""Values: what a change, a row, a table, a record and the state are. Nothing is decided here."""
