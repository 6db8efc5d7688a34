"""Of the schemas that agents published the last document of each replica is found."""

from pathlib import Path

import pytest

from checkpoints.reading.published_documents import published_documents
from checkpoints.reading.reader import open_state
from checkpoints.tables import TableName
from connectors import wire
from streaming.core.records.record import PublishedSchema
from tests.checkpoints.written_state import WrittenState, ruv


@pytest.mark.parametrize(
    ("records", "found"),
    [
        ((("a", '{"n":1}'),), {"n": 1}),
        ((("a", '{"n":1}'), ("a", None), ("a", None)), {"n": 1}),
        ((("a", '{"n":1}'), ("b", '{"n":2}')), {"n": 2}),
        ((("a", '{"n":1}'), ("b", '{"n":2}'), ("a", None)), {"n": 1}),
        ((("a", '{"n":1}'), ("b", None)), None),
        ((("a", '{"n":1}'), ("b", '{"digest":"c","document":"{"}'), ("c", None)), None),
        ((("'", '{"n":1}'), ("'", None)), {"n": 1}),
    ],
)
def test_the_document_is_that_of_the_last_digest(
    tmp_path: Path, records: tuple[tuple[str, str | None], ...], found: object
) -> None:
    """A file that was put back has an earlier one again; one that nobody has is not made up."""
    state = WrittenState(tmp_path / "state").create()
    rows = [
        {"batch": 1, "rid": rid, "offset": n, "kind": "schema", "outcome": "taken"}
        | {"value": wire.encode("s", PublishedSchema(*one)).decode()}
        for rid in (1, 2)
        for n, one in enumerate(records)
    ]
    state.append(TableName.EVENTS, *rows)
    state.commit(1, 1, ruv(r1=1))

    assert published_documents(open_state(state.root)) == {1: found, 2: found}
