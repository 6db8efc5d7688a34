"""Texts: what people edit, and words, sizes and tables for people to read."""
