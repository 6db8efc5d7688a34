"""Values that every rule needs: change, row, table, CSN, RUV. Nothing is decided here."""
