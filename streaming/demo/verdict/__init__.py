"""The verdict of a demonstration, from its files alone."""
