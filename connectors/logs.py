"""Log lines: text for people on a terminal, JSON for programs; a secret is in neither."""

import logging
import sys
from collections.abc import Callable, Collection, Mapping, MutableMapping
from typing import Any, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from connectors.kafka.client_errors import OnlyFaults
from connectors.log_format import WRITES_OBJECTS, LogFormat
from streaming.core.access.secret_names import HIDDEN

SHORTEST = 4
"""A shorter secret is left in: its letters are in every other word."""


def configure_logs(
    kind: LogFormat,
    level: str,
    who: str,
    fields: Callable[[], Mapping[str, object]],
    secrets: Collection[str],
    stream: TextIO | None = None,
) -> None:
    """Write the log of this process to `stream` (standard error).

    `level`: from which one on its own lines are written; those of libraries from warning on.
    `who`: whose lines they are, in text. `fields`: what is in every object; called for each.
    """
    target = stream or sys.stderr
    as_json = is_json(kind, target)
    handler = logging.StreamHandler(target)
    if as_json:
        setattr(handler, WRITES_OBJECTS, True)
    handler.setFormatter(_formatter(who, fields, secrets, is_json=as_json))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    for name in _OWN:
        logging.getLogger(name).setLevel(level.upper())
    handler.addFilter(OnlyFaults())


def is_json(kind: LogFormat, stream: TextIO) -> bool:
    """Whether such a log is written to `stream` as objects."""
    return kind is LogFormat.JSON or (kind is LogFormat.AUTO and not stream.isatty())


_OWN = ("slackwater", "connectors")
"""The loggers of this project; those inside them follow."""


def _formatter(
    who: str, fields: Callable[[], Mapping[str, object]], secrets: Collection[str], *, is_json: bool
) -> logging.Formatter:
    known = [one for one in secrets if len(one) >= SHORTEST]

    def add(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
        """The fields of every line; those of the line itself go before."""
        return {**fields(), **event}

    def hide(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
        return {name: _hidden(value, known) for name, value in event.items()}

    before: list[Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper("iso", utc=True),
    ]
    shown: list[Processor] = [structlog.stdlib.ProcessorFormatter.remove_processors_meta]
    if is_json:
        shown += [
            add,
            structlog.processors.format_exc_info,
            hide,
            structlog.processors.JSONRenderer(ensure_ascii=False),
        ]
    else:
        shown += [structlog.processors.format_exc_info, hide, _text(who)]
    return structlog.stdlib.ProcessorFormatter(foreign_pre_chain=before, processors=shown)


def _hidden(value: object, secrets: Collection[str]) -> object:
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, HIDDEN)
    return value


def _text(who: str) -> Processor:
    """Time, program, level and message; an exception below."""

    def render(_: WrappedLogger, __: str, event: MutableMapping[str, Any]) -> str:
        name = who if event["logger"].partition(".")[0] in _OWN else event["logger"]
        line = f"{event['timestamp']} {name} {event['level'].upper()} {event['event']}"
        return "\n".join([line, *([event["exception"]] if "exception" in event else [])])

    return render
