"""Commands that look: status, positions, conflicts, quarantine."""
