"""The topics as a running hub finds and uses them."""
