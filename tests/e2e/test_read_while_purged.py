"""Commands that read a state for long, while its hub purges it and removes dead files."""

import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from checkpoints.maintenance import background
from checkpoints.maintenance.background import Maintenance
from checkpoints.maintenance.backup import back_up
from checkpoints.maintenance.leases import Lease, leased, recorded_leases
from checkpoints.maintenance.purge import PurgedState
from checkpoints.reading.purgeable import PurgeRequest
from checkpoints.store import StateStore
from checkpoints.tables import TableName
from connectors.kafka.embedded.broker import Broker
from streaming.core.model.errors import HubError
from streaming.core.model.table import DEFAULT_DATASET
from streaming.core.retention.purge import purged, purged_up_to
from streaming.facts.history.past_rows import past
from streaming.replay.report.answer import choose
from streaming.replay.session import reading
from streaming.replay.verify import Audit, verify
from tests.e2e.test_short_history import rows_epoch, state_of
from tests.harness.site import Site, site_with_sessions

EPOCHS = 12
DATASETS = {"t": DEFAULT_DATASET}

pytestmark = pytest.mark.more


@pytest.fixture
def pair(
    tmp_path: Path,
    broker: Broker,
    topic_prefix: str,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> Site:
    """The state of a hub that has ended, of a dozen hub epochs, with `rows` of most of them."""
    monkeypatch.setenv("SLACKWATER_LIMITS__MATERIALIZE_EVERY_S", "1")
    monkeypatch.setattr(background, "SMALL_FILES_MAX", 0)
    monkeypatch.setattr(background, "CHECKPOINT_EVERY_COMMITS", 1)
    with site_with_sessions(tmp_path, broker.bootstrap_servers, topic_prefix) as made:
        a, b = made.replicas.values()
        with made.running(spark) as hub:
            number = 0
            while number < EPOCHS or not rows_epoch(made):
                a.write(f"k{number}", "x")
                number += 1
                hub.brings(a, b)
        return made


def purge_all(at: Site, spark: SparkSession) -> bool:
    """What a hub does whose history is old, at once; whether anything was deleted."""
    store, state = StateStore(at.state), state_of(at)
    beside = Maintenance(spark, store, dead_kept_s=0)
    later_ms = 2 * round(time.time() * 1_000)
    try:
        asked = PurgeRequest(state, state.hub_epoch, later_ms, DATASETS, 0)
        found = beside.find_purge(asked).result()
        after = state if found is None else purged(state, found)
        is_done = beside.purge(PurgedState(after, purged_up_to(after), later_ms)).result()
        for _ in range(2):
            beside.maintain().result()
        assert is_done == (found is not None)
    finally:
        beside.close()
    return is_done


def slow_verify(at: Site, meanwhile: Callable[[], None]) -> Audit:
    """A `verify` during which something happens, before it reads the first batch."""
    config, happened = at.config(), list[bool]()
    with past(config) as store:
        chosen = choose(store, None, None)
        with reading(config, store, chosen.marks) as read:

            def slow(name: TableName, first: int, last: int) -> pa.Table:
                if not happened:
                    happened.append(True)
                    meanwhile()
                return read(name, first, last)

            return verify(store, chosen, slow)


@pytest.mark.parametrize("is_leased", [True, False])
def test_a_slow_verify_ends_as_if_nothing_had_been_purged(
    pair: Site, spark: SparkSession, *, is_leased: bool
) -> None:
    """Without its lease what it reads is gone."""
    purges = list[bool]()
    lease = leased(pair.state, "verify") if is_leased else nullcontext()

    with lease:
        try:
            is_sound = slow_verify(pair, lambda: purges.append(purge_all(pair, spark))).is_sound
        except (HubError, KeyError):  # a plan that is gone
            is_sound = False

    assert (is_sound, purges) == (is_leased, [not is_leased])
    assert purge_all(pair, spark)


def test_a_slow_backup_is_whole(
    pair: Site, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first table is copied, and then everything is purged that it does not keep."""
    real, purges = StateStore.create, list[bool]()

    def slow(store: StateStore) -> None:
        real(store)
        purges.append(purge_all(pair, spark))

    log = StateStore(pair.state).read(TableName.CHANGELOG).num_rows
    with leased(pair.state, "backup"), monkeypatch.context() as patched:
        patched.setattr(StateStore, "create", slow)
        made = back_up(pair.state, tmp_path / "copy", 0)

    assert purges == [False]
    assert made.rows[TableName.CHANGELOG] == log
    assert StateStore(tmp_path / "copy").read(TableName.CHANGELOG).num_rows == log


@pytest.mark.parametrize(
    "arguments", [("verify",), ("replay",), ("backup", "COPY")], ids=lambda one: str(one[0])
)
def test_the_commands_take_a_lease_and_give_it_back(
    pair: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    """Each takes it before it reads anything."""
    taken = list[str]()
    write = Lease.text

    def text(lease: Lease) -> bytes:
        taken.append(lease.command)
        return write(lease)

    monkeypatch.setattr(Lease, "text", text)
    place = {"COPY": str(tmp_path / "copy")}

    pair.slackwater(*(place.get(one, one) for one in arguments))

    assert taken == [arguments[0]]
    assert recorded_leases(pair.state) == {}
