"""Parse canonical commits with vectorized operations: a batch may have one for every change."""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from streaming.core.model.table import Table
from streaming.core.records.check import VERSION, Limits
from streaming.core.records.form import ID_CHARS
from streaming.core.records.record import RecordKind
from streaming.stages.checked import Bools, bools, checked, texts
from streaming.stages.csns import are_of_record

_COMMIT = (
    rf'\A\{{"v":{VERSION},"kind":"{RecordKind.COMMIT}","session":"(?P<session>[ !#-\[\]-~]+)",'
    r'"prim_csn":"(?P<prim_csn>[0-9a-f]{20})"\}\z'
)


def parse_commits(
    placed: pa.Table, _tables: Mapping[str, Table], limits: Limits
) -> tuple[pa.Table, Bools]:
    """Return (CHECKED of the valid canonical commits, a mask of them); `placed`: PLACED."""
    members = pc.extract_regex(placed["value"], _COMMIT)
    prim_csn = texts(pc.struct_field(members, "prim_csn").cast(pa.string()))
    fits = pc.less_equal(pc.binary_length(pc.struct_field(members, "session")), ID_CHARS)
    good = bools(fits) & are_of_record(placed, prim_csn, limits)
    there, found = placed.filter(pa.array(good)), members.filter(pa.array(good))
    columns = {name: there[name] for name in placed.column_names}
    columns |= {name: pc.struct_field(found, name) for name in ("session", "prim_csn")}
    columns["kind"] = pa.repeat(RecordKind.COMMIT.value, len(found))
    columns["partial"] = pa.repeat(pa.scalar(value=False), len(found))
    return checked(columns, len(found)), good
