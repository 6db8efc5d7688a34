"""Options for other programs: flat dotted names, and no secret is ever shown."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator

from streaming.core.access.secret_names import HIDDEN, is_secret


def masked(options: Mapping[str, str]) -> dict[str, str]:
    """The options in name order, with every secret replaced."""
    return {name: HIDDEN if is_secret(name) else options[name] for name in sorted(options)}


def all_masked(options: Mapping[str, str]) -> dict[str, str]:
    """The options in name order, all without their value: no name tells which are secret."""
    return dict.fromkeys(sorted(options), HIDDEN)


def masked_values(values: Mapping[str, object]) -> dict[str, object]:
    """The values of a section, in its order, with every secret that is set replaced."""
    return {n: HIDDEN if is_secret(n) and v is not None else v for n, v in values.items()}


def flat(value: object) -> object:
    """Turn nested tables into dotted names: TOML reads a bare `a.b = 1` as a table in a table.

    Nested names win over dotted ones, because the environment writes nested names. Any other
    value is returned unchanged, for the model to refuse.
    """
    return _flat(value, "") if isinstance(value, dict) else value


def _flat(table: dict[str, object], prefix: str) -> dict[str, object]:
    names: dict[str, object] = {}
    for name, value in sorted(table.items(), key=lambda item: isinstance(item[1], dict)):
        if isinstance(value, dict):
            names |= _flat(value, f"{prefix}{name}.")
        else:
            names[prefix + name] = _option_text(value)
    return names


def _option_text(value: object) -> object:
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)
        case _:
            return value


Options = Annotated[dict[str, str], BeforeValidator(flat)]
"""Options by their full names; numbers and booleans become text."""
