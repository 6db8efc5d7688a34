"""Packets at the hub: the folders that it writes them into, and takes those of replicas from."""
