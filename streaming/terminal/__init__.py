"""Text on a terminal: tables for people, JSON for programs, errors on stderr."""
