"""From the bytes of records to eligible transactions: checks, sessions, pending lists."""
