"""A package as if it were not installed."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock


@contextmanager
def without(package: str, importer: str) -> Iterator[None]:
    """Imports of this package fail inside the block, so `importer` cannot be imported either."""
    inside = f"{package}."
    known = {name for name in sys.modules if name == package or name.startswith(inside)}
    with mock.patch.dict(sys.modules, dict.fromkeys({package, *known})):
        sys.modules.pop(importer, None)
        yield
