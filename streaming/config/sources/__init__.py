"""Where a configuration comes from: its file, secret files, the environment."""
