"""What a query answers, within the time that it has."""

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from streaming.core.model.errors import QuestionError

ENDS_S = 2.0
"""How long an interrupted query may take to end before the process does without."""


class SqlAnswer(NamedTuple):
    """The columns of an answer, of which two may have one name, and its first rows."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


def answer_within(
    timeout_s: float, work: Callable[[], SqlAnswer], interrupt: Callable[[], None]
) -> SqlAnswer:
    """The answer, in time; an interruption ends the work at once.

    A signal is handled in the main thread between two steps of Python, and a query is one step.
    """
    found, ended = list[SqlAnswer | BaseException](), threading.Event()

    def run() -> None:
        try:
            found.append(work())
        except BaseException as error:  # noqa: BLE001  # it is raised where it is waited for
            found.append(error)
        ended.set()

    try:
        threading.Thread(target=run, name="query", daemon=True).start()
        if not ended.wait(timeout_s):
            raise QuestionError(
                f"the query takes longer than {timeout_s:g} s: ask for less, or give it more time"
                " with --timeout"
            )
    finally:
        if not ended.is_set():
            interrupt()
            ended.wait(ENDS_S)
    (answer,) = found
    if isinstance(answer, BaseException):
        raise answer
    return answer
