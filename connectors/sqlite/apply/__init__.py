"""Applies what the hub sends, and saves the rows that exist nowhere else before they are lost."""
