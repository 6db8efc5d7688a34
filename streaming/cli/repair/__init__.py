"""Commands that repair: records in quarantine, lost input, a database that is emptied."""
