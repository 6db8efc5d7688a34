"""A consumer that is away: the rows that it lacks, and the resync that brings them.

Rules of a document on file replication, in this project's words (docs/rules/change_tracking.md).
"""
