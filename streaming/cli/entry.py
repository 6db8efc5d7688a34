"""The entry point: it imports almost nothing before an interruption is dealt with."""

import atexit
import gc
import io
import os
import signal
import sys
from contextlib import suppress
from importlib import import_module
from types import FrameType
from typing import TextIO

_SERVING = ("run", "agent")
"""The commands that work until they are stopped: stopping them is no failure."""


def main() -> int:
    """Run the command line; its exit code."""
    ended = _Ended()
    if len(sys.argv) > 1 and sys.argv[1] in _SERVING:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _end)
        atexit.register(ended.leave)  # the first to be registered is the last to be called
    ended.code = _run()
    return ended.code


class _Ended:
    """How a command ended; its exit code is 1 where it had none."""

    code = 1

    def leave(self) -> None:
        """End without Python's finalization, which aborts a thread that is inside of a library.

        A daemon thread may be reading a table, for the page or a standby's window: a hub that
        ended well would end with SIGABRT.
        """
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):  # nobody reads it, or it is closed
                stream.flush()
        os._exit(self.code)


def _run() -> int:
    """Run the command; an interrupted one says so in a line."""
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
