"""The steps of one batch, one step a file."""
