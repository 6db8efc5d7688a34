"""Facts about a hub: one model for the command line, HTTP and metrics.

A fact is computed from one committed state (`checkpoints.reading.reader.Reader`) and the
configuration. Nothing here prints or writes, or depends on the caller; the time is an argument.
"""
