"""Commands that order something of a hub, a replica or an agreement."""
