"""What every JVM of ours has on its command line: no machine's country, zone or encoding.

Java writes numbers, and so the names of files, in the digits of its locale, compares words by its
rules, and reads files by its encoding. Delta looks for `00000000000000000001.json` in the digits of
Egypt where the locale is `ar-EG`, and finds no table. On the command line the last option counts,
and it counts over JAVA_TOOL_OPTIONS and JDK_JAVA_OPTIONS: so the pins stand behind every other
option. `_JAVA_OPTIONS` alone counts over the command line, so they are added to it.
"""

from collections.abc import Mapping

_LOCALE = {"language": "en", "country": "US", "script": "", "variant": ""}

PINS = (
    *(
        f"-Duser.{part}{category}={value}"
        for part, value in _LOCALE.items()
        for category in ("", ".format", ".display")
    ),
    "-Duser.extensions=",
    "-Duser.timezone=UTC",
    *(f"-D{what}.encoding=UTF-8" for what in ("file", "sun.jnu", "stdout", "stderr")),
)
"""Java's options; behind them stands the class to run."""
_TEXT = " ".join(PINS)

_OVER_ALL = "_JAVA_OPTIONS"
_OF_LAUNCHER = "SPARK_LAUNCHER_OPTS"
"""The options of the JVM in which Spark composes the command line of its driver."""


def pinned(options: str) -> str:
    """A user's options, and the pins behind them."""
    return f"{options} {_TEXT}".strip()


def pinned_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a JVM: where it has options that count over the pins, these follow."""
    names = {_OF_LAUNCHER, *({_OVER_ALL} & environment.keys())}
    return {**environment, **{name: f"{environment.get(name, '')} {_TEXT}" for name in names}}
