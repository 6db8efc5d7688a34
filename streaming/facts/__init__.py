"""What can be asked about a hub: one model for the command line, HTTP and metrics.

A fact is computed from one committed state (`checkpoints.reader.Reader`) and the configuration.
Nothing here prints, writes, or knows who asks; the time comes as an argument.
"""
