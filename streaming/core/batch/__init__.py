"""A whole batch: its transactions judged in hub order, and what each agreement is sent of it."""
