"""The epoch number matrix of document 003: how many changes of whom each replica has."""
