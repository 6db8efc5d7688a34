"""The entry point: it imports almost nothing before an interruption is dealt with."""

import gc
import io
import os
import signal
import sys
from importlib import import_module
from types import FrameType
from typing import TextIO

_SERVING = ("run", "agent")
"""The commands that work until they are stopped: stopping them is no failure."""


def main() -> int:
    """Run the command line; an interrupted command says so in a line."""
    if len(sys.argv) > 1 and sys.argv[1] in _SERVING:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _end)
    keep_files_private()
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # it looks for some everywhere
    for stream in (sys.stdout, sys.stderr):
        _write_any_text(stream)
    try:
        gc.disable()  # as for a command's own imports, see streaming/cli/lazy.py
        run = import_module("streaming.cli.main").main
        gc.enable()
        return int(run())
    except KeyboardInterrupt:  # before a command, or while its modules are imported
        sys.stderr.write("slackwater: interrupted\n")
        return 128 + signal.SIGINT


def keep_files_private() -> None:
    """Write files that no other user reads; a umask that shuts others out already is kept.

    Setup writes what all users of the machine run.
    """
    if sys.argv[1:2] == ["setup"]:
        os.umask(os.umask(0o022) | 0o022)
        return
    given = os.umask(0o077)
    if given & 0o007 == 0o007:
        os.umask(given)


def _write_any_text(stream: TextIO) -> None:
    """Write UTF-8 to files and pipes; a terminal shows what its locale lacks as escapes."""
    if isinstance(stream, io.TextIOWrapper):
        encoding = None if stream.isatty() else "utf-8"
        stream.reconfigure(encoding=encoding, errors="backslashreplace")


def _end(_number: int, _frame: FrameType | None) -> None:
    """Exit at once: the command has not begun, or it would have handlers of its own."""
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
