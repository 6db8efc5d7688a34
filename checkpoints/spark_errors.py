"""Delta's errors raised through Spark, as the exceptions that the rest of the hub handles."""

from collections.abc import Iterator
from contextlib import contextmanager

from deltalake.exceptions import CommitFailedError
from py4j.protocol import Py4JJavaError

_CONFLICT = "DELTA_CONCURRENT"
"""Another hub committed first: one of the two was overtaken and may not have noticed yet."""


@contextmanager
def translated() -> Iterator[None]:
    """CommitFailedError if another hub committed first, OSError if the storage fails."""
    try:
        yield
    except Py4JJavaError as error:
        if _CONFLICT in str(error):
            raise CommitFailedError(_root_cause(error)) from error
        raise OSError(_root_cause(error)) from error


def _root_cause(error: Py4JJavaError) -> str:
    """The root cause of a Java exception, in one line."""
    cause = error.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    return str(cause.toString())
