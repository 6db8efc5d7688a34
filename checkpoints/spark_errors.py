"""What Delta says through Spark, as the rest of the hub knows it."""

from collections.abc import Iterator
from contextlib import contextmanager

from deltalake.exceptions import CommitFailedError
from py4j.protocol import Py4JJavaError

_CONFLICT = "DELTA_CONCURRENT"
"""Another hub was faster: of the two, one was overtaken, and may not know it yet."""


@contextmanager
def translated() -> Iterator[None]:
    """CommitFailedError where another hub was faster, OSError for what the storage refuses."""
    try:
        yield
    except Py4JJavaError as error:
        if _CONFLICT in str(error):
            raise CommitFailedError(_root_cause(error)) from error
        raise OSError(_root_cause(error)) from error


def _root_cause(error: Py4JJavaError) -> str:
    """What Java said first, in one line."""
    cause = error.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    return str(cause.toString())
