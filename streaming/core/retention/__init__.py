"""What may be purged: up to where nobody needs the history, and what a purge makes of the state.

Rules of a document on replication, in this project's words (docs/protocol.md, Purge).
"""
