"""Users' conflict functions: found by the import path that the configuration names."""

import importlib
from collections.abc import Collection, Iterable, Iterator
from typing import cast

from connectors.trusted_file import check_module
from streaming.core.conflict.winner import UserFunction
from streaming.core.model.errors import ConfigError, FunctionError
from streaming.core.model.function import ConflictRule
from streaming.core.model.table import Table


def loaded(tables: Iterable[Table]) -> dict[str, UserFunction]:
    """Import path -> function, for the tables that have one; FunctionError names what is wrong."""
    paths = {str(t.function): t.name for t in tables if t.function.rule is ConflictRule.USER}
    return {path: _loaded(path, table) for path, table in paths.items()}


def complaints(tables: Iterable[Table], modules: Collection[str]) -> Iterator[str]:
    """One sentence for each function that cannot be used; no other module is imported."""
    for table in tables:
        if faults := list(unlisted([table], modules)):
            yield from faults
            continue
        try:
            loaded([table])
        except FunctionError as error:
            yield str(error)


def unlisted(tables: Iterable[Table], modules: Collection[str]) -> Iterator[str]:
    """One sentence for each function of a module that `functions.modules` does not name."""
    for table in tables:
        path = str(table.function)
        if table.function.rule is ConflictRule.USER and path.partition(":")[0] not in modules:
            yield (
                f"conflict function {path} of table {table.name}: functions.modules does not name"
                " its module: add it there if its code may run as the hub"
            )


def _loaded(path: str, table: str) -> UserFunction:
    module, name = path.split(":")
    try:
        check_module(module)
        function = getattr(importlib.import_module(module), name)
    except ConfigError as error:
        raise FunctionError(f"conflict function {path} of table {table}: {error}") from error
    except Exception as error:  # the user's module may raise anything
        raise FunctionError(
            f"conflict function {path} of table {table} cannot be loaded:"
            f" {type(error).__name__}: {error}; put its module on PYTHONPATH"
        ) from error
    if not callable(function):
        raise FunctionError(f"conflict function {path} of table {table} cannot be called")
    return cast("UserFunction", function)
