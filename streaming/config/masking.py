"""What is sent in place of a column's value: the section of the key, and the masks of a table."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

from streaming.config.options import masked_values
from streaming.core.model.errors import ConfigError
from streaming.core.model.mask import (
    KEY_CHARACTERS,
    NULL,
    ColumnMask,
    ConstantMask,
    HashMask,
    no_key,
)
from streaming.core.model.table import ColumnType, Table
from streaming.core.model.values import Number, canonical_text

HASH, CONSTANT = "hash", "constant:"
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_HASHED = (ColumnType.TEXT, ColumnType.BYTES)


class MaskingConfig(BaseModel):
    """Columns that are sent masked."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hash_secret: str | None = None
    """The key of columns that are sent as a hash, 16 characters at least; only the hub and
    `slackwater compare` need it. Set it through a secret file, SLACKWATER_MASKING__HASH_SECRET."""

    @property
    def options(self) -> dict[str, str]:
        """What is set of it, by name."""
        return {name: text for name, text in self.model_dump().items() if text is not None}

    def __repr_args__(self) -> Iterator[tuple[str, Any]]:
        yield from masked_values(self.model_dump()).items()


def mask_faults(masks: Iterable[ColumnMask], key: str | None) -> Iterator[str]:
    """Why a hub cannot send with these masks and this key."""
    if any(isinstance(one, HashMask) for one in masks) and len(key or "") < KEY_CHARACTERS:
        yield no_key(key)


def column_masks(table: Table, named: Mapping[str, str], key: str | None) -> dict[str, ColumnMask]:
    """Column -> its mask; ConfigError: it cannot be masked so."""
    try:
        return {name: _mask(table, name, text, key) for name, text in named.items()}
    except ConfigError as error:
        raise ConfigError(f"masks: {error}") from None


def _mask(table: Table, column: str, text: str, key: str | None) -> ColumnMask:
    at = f"{column} of table {table.name}"
    if column not in table.columns:
        raise ConfigError(f"table {table.name} has no column {column!r}: name one that it has")
    if column in table.key:
        raise ConfigError(f"{at} is a key column, by which rows are known: it cannot be masked")
    kind = table.columns[column]
    if text == NULL:
        return ConstantMask(NULL)
    if text == HASH and kind in _HASHED:
        return HashMask(kind, key)
    if text == HASH:
        raise ConfigError(f"{at} is of type {kind}: only text and bytes are sent as a hash")
    if text.startswith(CONSTANT):
        return ConstantMask(_constant(at, text.removeprefix(CONSTANT), kind))
    raise ConfigError(f'{at} = {text!r}: write "null", "hash" or "constant:VALUE"')


def _constant(at: str, text: str, kind: ColumnType) -> str:
    value: object = text
    if kind is ColumnType.BOOL:
        value = {"true": True, "false": False}.get(text)
    elif kind in (ColumnType.INT32, ColumnType.FLOAT64):
        value = Number(text) if _NUMBER.fullmatch(text) else text
    found = canonical_text(value, kind)
    if found is None:
        raise ConfigError(f"{at}: {text!r} is no {kind} as the wire writes it (docs/wire.md)")
    return found
