"""What happened: conflicts, records in quarantine, the story of a change, rows of the past."""
