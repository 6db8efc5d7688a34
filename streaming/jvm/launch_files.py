"""Spark's settings on their way into a new JVM: in files of this user's alone.

On a command line every user of the machine would read them, with `ps`, and any of them may be a
password: of a bucket, of a catalog, of a library that only its user knows.
"""

import shlex
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

_DEFAULT_OPTIONS, _OWN_OPTIONS = "spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions"
_ESCAPED = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"})
_IN_NAMES = str.maketrans({c: f"\\{c}" for c in ":=#! "})


@contextmanager
def launch_files(settings: Mapping[str, str]) -> Iterator[list[str]]:
    """The arguments by which spark-submit reads these settings, as long as the block takes.

    Java's own options must be on Java's command line; there they are the name of a file.
    """
    with tempfile.TemporaryDirectory(prefix="slackwater-") as name:  # of mode 700
        properties, options = Path(name) / "spark.properties", Path(name) / "java.options"
        default, own = settings.get(_DEFAULT_OPTIONS, ""), settings.get(_OWN_OPTIONS, "")
        _write(options, argument_file(f"{default} {own}"))
        in_file = {**settings, _DEFAULT_OPTIONS: "", _OWN_OPTIONS: f'"@{options}"'}
        _write(properties, properties_file(in_file))
        yield ["--properties-file", str(properties), "--load-spark-defaults"]


def properties_file(settings: Mapping[str, str]) -> str:
    """The text of a file of Java properties, a line each."""
    lines = (f"{_name(name)}={_value(text)}\n" for name, text in settings.items())
    return "".join(lines)


def argument_file(options: str) -> str:
    """The text of a file of Java's arguments, a line each; `options` are separated by blanks."""
    arguments = (option.translate(_ESCAPED).replace('"', '\\"') for option in shlex.split(options))
    return "".join(f'"{argument}"\n' for argument in arguments)


def _name(text: str) -> str:
    return text.translate(_ESCAPED).translate(_IN_NAMES)


def _value(text: str) -> str:
    """A value; blanks at its beginning would otherwise separate it from its name."""
    escaped = text.translate(_ESCAPED)
    bare = escaped.lstrip(" ")
    return "\\ " * (len(escaped) - len(bare)) + bare


def _write(file: Path, text: str) -> None:
    file.touch(mode=0o600)
    file.write_text(text, encoding="utf-8")
