"""What installs a hub: image, compose, chart, units; and what sets a checkout up."""
