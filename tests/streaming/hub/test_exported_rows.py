"""The rows that the packets of document 003 name, from a hub's own tables."""

from dataclasses import replace
from pathlib import Path

import pytest

from checkpoints.commit.epochs import checkpoint_of
from checkpoints.commit.recorded import commit_of
from checkpoints.store import StateStore
from streaming.config.sources.load import load
from streaming.core.matrix.packets import PacketFeed
from streaming.core.state.agreement_state import AgreementState, SendRange
from streaming.core.state.hub_state import HubState
from streaming.core.tracking.resync import CoveredPosition
from streaming.hub.batch.packets import headers
from streaming.hub.configured import settings_of
from tests.checkpoints.written_state import WrittenState, ruv
from tests.streaming.cli.matrix_state import of_document_003

BATCH = 5
"""The last batch of the fixture, which is of hub epoch 5."""


@pytest.fixture
def hub(tmp_path: Path) -> WrittenState:
    """Boston, Bangalore and San Francisco at hub epoch 5."""
    state = WrittenState(tmp_path / "state").create()
    of_document_003(tmp_path / "hub.toml", state)
    return state


def exported(hub: WrittenState, name: str, sent: int) -> tuple[HubState, StateStore]:
    """The hub's state once its last batch exported to a consumer that was sent so much before."""
    store = StateStore(hub.root)
    row = commit_of(store, BATCH)
    assert row is not None
    state = checkpoint_of(row).state
    feed = PacketFeed(number=1, batch=BATCH)
    one: AgreementState = replace(state.agreements[name], sent_epoch=5, scanned=5, feed=feed)
    known = SendRange(sent, 5, sent, ruv(r1=sent), CoveredPosition(5, ruv(r1=5)))
    agreements = {**state.agreements, name: one}
    return replace(state, agreements=agreements, to_send={name: known}), store


@pytest.mark.parametrize(
    ("name", "sent", "before"),
    [
        ("to-sanfran", 4, {"boston_hub": 912, "bangalore": 653, "sanfran_hub": 504}),
        ("to-bangalore", 1, {"boston_hub": 709, "bangalore": 653, "sanfran_hub": 221}),
    ],
)
def test_a_packet_names_the_row_before_it_and_raises_it_to_the_own_one(
    hub: WrittenState, tmp_path: Path, name: str, sent: int, before: dict[str, int]
) -> None:
    """913 to 950 go to San Francisco; 710 to 950 and 222 to 504 to Bangalore."""
    state, store = exported(hub, name, sent)

    (header,) = headers(store, settings_of(load(tmp_path / "hub.toml")), state)

    assert header.row_before == before
    assert header.row_after == {"boston_hub": 950, "bangalore": 653, "sanfran_hub": 504}
    assert (header.first_prev, header.last_hub_epoch) == (sent, 5)


def test_the_second_export_is_empty(hub: WrittenState, tmp_path: Path) -> None:
    """It says no more than what the hub has got."""
    state, store = exported(hub, "to-sanfran", 4)
    again = replace(state, to_send={})

    (header,) = headers(store, settings_of(load(tmp_path / "hub.toml")), again)

    assert header.row_before == header.row_after
    assert header.last_hub_epoch is None
