"""What an operator may order, and how the hub carries it out."""
