"""A consumer that is away: the rows that it lacks, and the resync that brings them.

Rules of a document on file replication, in this project's words (docs/rules/change_tracking.md).
Every size and threshold is a parameter, every decision a closed enum; the hub does what they say.
"""
