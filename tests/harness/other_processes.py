"""The processes of this machine, by what stands on their command lines."""

from contextlib import suppress
from pathlib import Path


def processes_with(text: str) -> dict[int, str]:
    """Process id -> command line of each that has this text there."""
    found = dict[int, str]()
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended
            line = file.read_text(errors="replace").replace("\0", " ")
            if text in line:
                found[int(file.parent.name)] = line
    return found
