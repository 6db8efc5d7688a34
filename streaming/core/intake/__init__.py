"""From records in topic order to eligible transactions: sessions, duplicates, pending lists."""
