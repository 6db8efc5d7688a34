"""JSON schemas of what no package on PyPI brings: `make schemas` generates them."""
