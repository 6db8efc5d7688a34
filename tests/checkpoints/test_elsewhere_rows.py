"""What a replica has of another hub outlives the hub that noted it."""

from dataclasses import replace

from checkpoints.commit.elsewhere import elsewhere_of, elsewhere_rows, with_elsewhere
from streaming.core.state.reflection import Session
from streaming.core.state.replica_state import ReplicaState
from tests.checkpoints.written_state import replica, ruv
from tests.harness.builders import csn

OWN = Session("here", 1, (1,), (0,))
ELSEWHERE = Session(
    "there", 4, (4,), (0,), "other", 0, ((4, ruv(r2=3)), (7, ruv(r2=5))), ((9, csn(2, 1)),)
)
BACK = Session("back", 8, (8,), (0,), hub_epoch=12)


def test_sessions_come_back_as_they_were() -> None:
    """Of every replica, each session by its own."""
    known = [ReplicaState(1, sessions=(OWN, ELSEWHERE, BACK)), replica(2, 5)]
    rows = elsewhere_of(elsewhere_rows(known))
    bare = [
        replace(
            one,
            sessions=tuple(Session(s.id, s.hello_epoch, s.epochs, s.covers) for s in one.sessions),
        )
        for one in known
    ]

    assert [with_elsewhere(one, rows) for one in bare] == known


def test_a_hub_that_is_alone_stores_nothing() -> None:
    """Its commits are as large as before."""
    assert elsewhere_rows([replica(1, 5), replica(2)]) == []
