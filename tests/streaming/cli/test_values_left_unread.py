"""What is asked of all records in quarantine is answered without their bytes."""

import json
from collections.abc import Sequence
from pathlib import Path
from urllib.request import urlopen

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from checkpoints.reading.quarantined_rows import written_since
from checkpoints.reading.reader import open_state
from checkpoints.tables import TableName
from streaming.config.sources.load import load
from tests.checkpoints.written_state import WrittenState, replica, ruv
from tests.harness.recorded_hub import served
from tests.streaming.cli.conftest import Slackwater

UNNAMED, NAMED = "1-4", "1-5"


def damage_values(folder: Path) -> None:
    """Overwrite what the files of the table have in its column of bytes, and nothing else."""
    for name in DeltaTable(folder).file_uris():
        path = Path(name)
        parts = pq.ParquetFile(path).metadata.row_group(0)
        columns = [parts.column(number) for number in range(parts.num_columns)]
        (value,) = [one for one in columns if one.path_in_schema == "value"]
        first = value.dictionary_page_offset or value.data_page_offset
        with path.open("r+b") as file:
            file.seek(first)
            file.write(b"\xff" * value.total_compressed_size)


@pytest.fixture(autouse=True)
def quarantine(state: WrittenState) -> None:
    """Two records of a replica, one of which names its row; their bytes cannot be read."""
    state.commit(2, 0, ruv(), [replica(1)])
    common = {"batch": 1, "action": "kept", "rid": 1, "invalid": True, "value": b"{" * 500}
    state.append(
        TableName.QUARANTINE,
        {**common, "id": UNNAMED, "offset": 4, "reason": "json"},
        {**common, "id": NAMED, "offset": 5, "reason": "key", "table": "t", "key": '{"id":"1"}'},
    )
    damage_values(state.root / TableName.QUARANTINE)


@pytest.mark.parametrize(
    "command",
    [
        ["status", "--json"],
        ["level"],
        ["quarantine", "list"],
        ["quarantine", "list", "--all"],
        ["quarantine", "drop", "--all"],
    ],
    ids=" ".join,
)
def test_a_command_about_all_records_reads_no_bytes(
    slackwater: Slackwater, command: Sequence[str]
) -> None:
    """Those of a million records fit no small machine's memory."""
    answer = slackwater(*command)

    assert answer.code in (0, 1)
    assert "cannot be read" not in answer.err
    assert answer.out


def test_bytes_that_are_asked_for_are_read(slackwater: Slackwater) -> None:
    """So the damage is one that whoever reads them meets."""
    shown, listed = slackwater("quarantine", "show", NAMED), slackwater("quarantine", "list")

    assert "cannot be read" in shown.err
    assert NAMED in listed.out


def test_the_port_and_a_release_read_no_bytes(config_file: Path, state: WrittenState) -> None:
    """A page is asked for again and again, beside a hub at work."""
    with served(load(config_file)) as port, urlopen(f"http://127.0.0.1:{port}/status") as answer:
        document = json.load(answer)

    assert document["quarantine"]["by_reason"] == {"json": 1, "key": 1}
    assert document["unnamed"] == {"a": {"json": 1}}
    assert [row["id"] for row in document["differing"]] == [NAMED]
    assert written_since(open_state(state.root)) == set()
