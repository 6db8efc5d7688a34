"""Skim: nearly all there is, at the price of one regular expression; the rest is settled after.

Nearly every record is a change as connectors/wire.py writes it, canonical and with its fields in
that order. One expression tells such a record and takes it apart. Control records are few and are
told on the driver (stages/control.py). What is left, good or bad, is asked rule by rule.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache, partial, reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from streaming.core.change import FIELD_SEPARATOR
from streaming.core.record import Kind
from streaming.core.table import Table
from streaming.core.values import json_text
from streaming.stages.facts import FACTS
from streaming.stages.parse import position, raw
from streaming.stages.pattern import objects, packs
from streaming.stages.plain import LIMITS, VERSION, Limits, is_of_record
from streaming.stages.validate import Known, content, known_tables, tables_of

UNSETTLED = "unsettled"
"""Stands for the reason of a record that is no plain change; it may be good or bad."""

_WHOLE, _PARTIAL = "\x1e", "\x1d"
"""What begins a record that was taken apart: its after-image has all columns, or lacks some."""

PARTS = (*("session", "csn", "prim_csn", "epoch", "table", "key", "op", "before", "after", "opno"),)

START = f'{{"v":{VERSION},"kind":"{Kind.CHANGE}","session":"'
SESSION = r'[^"\\\x00-\x1f]+'
EPOCH = "0|[1-9][0-9]{0,17}"
OPNO = "[1-9][0-9]{0,17}"
_HEAD = (
    rf'\A{re.escape(START)}(?<s>{SESSION}+)",'
    r'"csn":"(?<c>[0-9a-f]{20})",(?:"prim_csn":"(?<p>[0-9a-f]{20})",)?'
    rf'"epoch":(?<e>{EPOCH}),"table":'
)
_TAIL = rf'(?:,"opno":(?<n>{OPNO}))?\}}\z'


def skim(
    records: DataFrame,
    topics: Mapping[str, int],
    tables: Mapping[str, Table],
    limits: Limits = LIMITS,
) -> DataFrame:
    """The FACTS of plain changes; of all others UNSETTLED, their place, time and bytes."""
    there = records.where("value IS NOT NULL").select(*_position(tuple(topics.items())))
    for taken in _ways(known_tables(tables)):
        there = there.withColumn("taken", taken)
    parts = there.select("*", *_parts())
    return parts.withColumn("plain", _is_plain(limits)).select(*_facts())


@lru_cache(maxsize=8)
def _position(topics: tuple[tuple[str, int], ...]) -> list[Column]:
    """Expressions are made once: it takes long, and every micro-batch needs them again."""
    return [*position(topics), raw().alias("taken")]


@lru_cache(maxsize=8)
def _ways(known: Known) -> list[Column]:
    """One after the other these take a record apart: a mark and its parts.

    Each leaves a record that it does not know as it is, and one that is taken as well.
    """
    tables = [table for table in tables_of(known) if is_simple(table.name)]
    taken = F.col("taken")
    return [
        F.when(
            taken.startswith(START),
            F.regexp_replace(taken, pattern, mark + parts),
        ).otherwise(taken)
        for mark, lacking in ((_WHOLE, ""), (_PARTIAL, "?"))
        for pattern, parts in _patterns(tables, lacking)
    ]


def is_simple(name: str) -> bool:
    """Claim that this table's name stands in JSON as it is."""
    return json_text(name) == f'"{name}"'


def _patterns(tables: Iterable[Table], lacking: str) -> Iterator[tuple[str, str]]:
    """Few regular expressions over all tables, with their parts."""
    return map(_with_parts, packs(tables, partial(_pattern, lacking=lacking)))


def _with_parts(pack: Mapping[int, str]) -> tuple[str, str]:
    texts = "|".join(pack.values())
    groups = {part: [f"{part}{n}" for n in pack] for part in "tkoba"}
    groups["o"] += [f"d{n}" for n in pack]
    groups["b"] += [f"f{n}" for n in pack]
    order = (["s"], ["c"], ["p"], ["e"], *(groups[part] for part in "tkoba"), ["n"])
    parts = ("".join(f"${{{name}}}" for name in names) for names in order)
    return f"{_HEAD}(?:{texts}){_TAIL}", FIELD_SEPARATOR.join(parts)


def _pattern(n: int, table: Table, lacking: str) -> str:
    """An insert or update has an after-image, a delete has none; groups: see `_with_parts`."""
    key, after, before = objects(n, table, lacking)
    written = rf'(?<o{n}>insert|update)",(?:"before":(?<b{n}>{before}),)?"after":(?<a{n}>{after})'
    deleted = rf'(?<d{n}>delete)",(?:"before":(?<f{n}>{before}),)?"after":null'
    name = re.escape(table.name)
    return rf'"(?<t{n}>{name})","key":(?<k{n}>{key}),"op":"(?:{written}|{deleted})'


@lru_cache(maxsize=1)
def _parts() -> list[Column]:
    """The parts as columns, null where there is none."""
    taken = F.col("taken")
    is_taken = raw().startswith(START) & ~taken.startswith("{")
    body = F.substring(taken, F.lit(2), F.length(taken))
    parts = F.split(F.when(is_taken, body), FIELD_SEPARATOR)
    types = {"epoch": "bigint", "opno": "bigint"}
    texts = {name: F.nullif(F.get(parts, F.lit(n)), F.lit("")) for n, name in enumerate(PARTS)}
    return [text.cast(types.get(name, "string")).alias(name) for name, text in texts.items()]


@lru_cache(maxsize=8)
def _is_plain(limits: Limits) -> Column:
    """Claim that it was taken apart, and breaks none of the rules that the pattern cannot tell."""
    csn, prim_csn = F.col("csn"), F.col("prim_csn")
    claims = [
        csn.isNotNull(),
        F.is_valid_utf8(raw()),
        F.octet_length("value") <= limits.record_bytes,
        is_of_record(csn, limits),
        prim_csn.isNull() | (prim_csn == csn) | is_of_record(prim_csn, limits),
    ]
    return F.coalesce(reduce(and_, claims), F.lit(False))  # noqa: FBT003


@lru_cache(maxsize=1)
def _facts() -> list[Column]:
    plain = F.col("plain")
    columns = {name: F.when(plain, F.col(name)) for name in PARTS}
    columns |= {
        "reason": F.when(~plain, F.lit(UNSETTLED)),
        "detail": F.lit(None).cast("string"),
        "kind": F.when(plain, F.lit(Kind.CHANGE.value)),
        "partial": plain & F.col("taken").startswith(_PARTIAL),
        "content": F.when(plain, content()),
        "value": F.when(~plain, F.col("value")),
        "size": F.lit(None).cast("bigint"),
    }
    return [columns.get(name, F.col(name)).alias(name) for name in FACTS.names]
