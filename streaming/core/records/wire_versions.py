"""The versions of the wire (docs/wire.md)."""

WIRE_VERSIONS = (1,)
"""Those that this release reads and writes, the newest last."""
