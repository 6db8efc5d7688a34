"""The state that a release of the hub leaves behind, kept so that later versions can prove it.

    python -m tests.checkpoints.kept_state tests/checkpoints/states/format-1.tar.xz

makes one with the version that is checked out: the folder of a hub, what its topics held, and what
it said of itself. It is made once for each format and never again.
"""

import base64
import json
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from checkpoints.commit.recorded import batch_marks
from checkpoints.format_number import FORMAT
from checkpoints.reading.reader import open_state
from connectors import wire
from streaming.config.config import Config
from streaming.config.sources.load import load
from streaming.core.model.change import Change
from streaming.facts.consumers.ruvs import ruv_document
from streaming.facts.history.past_rows import past, standing_rows
from streaming.hub.configured import settings_of
from tests.model.language import play
from tests.model.local_hub import LocalHub, TopicsInMemory, local_hubs
from tests.model.replica import image
from tests.streaming.replay.conftest import STORY as BEGINNING

STORY = f"""
{BEGINNING}
r2 will refuse h 1 times
r1 writes h = w8
everything settles
r1 truncates u as w9
everything settles
r2 crashes
r2 says hello
r2 writes g = w10
r2 publishes w10 under its old session
r3 writes f = w11 in V
r3 publishes
the hub takes all
the operator pauses r2
r1 writes h = w12
r1 publishes
the hub takes all
"""
"""Conflicts, a transaction, a delete, a truncate, a record in quarantine, an open transaction and a
consumer that is away."""

A_SECOND_LATER = 1 << 48
"""What a CSN is larger by."""

HUB = "hub.toml"
TOPICS = "topics.json"
SAID = "said.json"


@dataclass(frozen=True, slots=True)
class KeptState:
    """The folder of a hub that ended, unpacked."""

    folder: Path

    @property
    def config(self) -> Config:
        """Its configuration."""
        return load(self.folder / HUB)

    @property
    def said(self) -> Any:  # noqa: ANN401 - JSON
        """What the hub that made it said of itself."""
        return json.loads((self.folder / SAID).read_text(encoding="utf-8"))

    def topics(self) -> TopicsInMemory:
        """What its topics held."""
        found = TopicsInMemory()
        for topic, records in json.loads((self.folder / TOPICS).read_text()).items():
            for key, value, time_ms in records:
                found.send(topic, key, base64.b64decode(value), time_ms)
        return found


def unpacked(file: Path, folder: Path) -> KeptState:
    """A kept state, in a folder of its own."""
    with tarfile.open(file) as archive:
        archive.extractall(folder, filter="data")
    return KeptState(folder)


def said_of(config: Config) -> Mapping[str, object]:
    """What a hub says of its state, in words that do not depend on when it is asked."""
    reader = open_state(config.hub.state)
    assert reader.commit is not None
    state = reader.commit.state
    with past(config) as store:
        rows = {
            name: [row._asdict() for row in standing_rows(store, name, None, None)[1]]
            for name in config.table_map()
        }
        batches = len(batch_marks(store))
    return {
        "hub_epoch": state.hub_epoch,
        "batches": batches,
        "ruvs": ruv_document(state.ruvs),
        "rows": rows,
        "agreements": {name: one.status_text for name, one in state.agreements.items()},
        "quarantine": reader.quarantine_counts(),
        "conflicts": reader.conflict_counts(),
        "open": sorted([rid, *of] for rid, *of in reader.open_changes()),
    }


def hub_of(kept: KeptState) -> LocalHub:
    """A hub that starts on it, and has read its topics to the end."""
    topics = kept.topics()
    hub = local_hubs(kept.folder, topics)(settings_of(kept.config).topology)
    hub.ended_at = {topic: len(records) for topic, records in topics.logs.items()}
    return hub


def goes_on(kept: KeptState) -> tuple[LocalHub, str]:
    """Such a hub behind the next change that a replica writes, and the CSN of that."""
    hub = hub_of(kept)
    _, value, time_ms = hub.topics.logs[hub.config.changes_topic("r1")][-1]
    session, record = wire.decode(value)
    assert isinstance(record, Change)
    csn = f"{int(record.csn, 16) + A_SECOND_LATER:020x}"
    change = record._replace(csn=csn, before=record.after, after=image("h", "w13"))
    hub.send(1, session, change, time_ms + 1_000)
    hub.take(None, 0, None)
    return hub, csn


def make(file: Path) -> None:
    """Play the story, and pack what it leaves."""
    with tempfile.TemporaryDirectory() as name:
        folder, topics = Path(name), TopicsInMemory()
        play(STORY, local_hubs(folder, topics))
        held = {
            topic: [[key, base64.b64encode(value).decode(), ms] for key, value, ms in records]
            for topic, records in topics.logs.items()
        }
        (folder / TOPICS).write_text(json.dumps(held), encoding="utf-8")
        said = said_of(load(folder / HUB))
        (folder / SAID).write_text(json.dumps(said, indent=1), encoding="utf-8")
        with tarfile.open(file, "w:xz") as archive:
            archive.add(folder, arcname=".")


if __name__ == "__main__":
    if f"format-{FORMAT}." not in sys.argv[1]:
        raise SystemExit(f"this version writes format {FORMAT}")
    make(Path(sys.argv[1]))
