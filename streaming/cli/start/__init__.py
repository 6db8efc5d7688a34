"""Commands that set up, check and start: configuration, broker, hub and agents."""
