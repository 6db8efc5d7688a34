"""An agreement that is taken out of the configuration comes back, and sends more than it did."""

from dataclasses import replace

import pytest

from streaming.config.config import Config
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.hub_state import HubState
from streaming.core.state.membership import LastTopology, adopted
from streaming.hub.configured import topology_before, topology_of


def config(*agreements: dict[str, object]) -> Config:
    """A configuration of two replicas, tables t and u, and these agreements."""
    return Config.model_validate(
        {
            "kafka": {"bootstrap_servers": "localhost:9092"},
            "replicas": [{"name": "a", "rid": 1}, {"name": "b", "rid": 2}],
            "tables": [{"name": n, "key": ["k"], "columns": {"k": "text"}} for n in "tu"],
            "agreements": [{"name": "to-a", "consumer": "a"}, *agreements],
        }
    )


GONE = config()
ONLY_T = config({"name": "to-b", "consumer": "b", "tables": ["t"]})
SOME_OF_T = config({"name": "to-b", "consumer": "b", "tables": ["t"], "rows": {"t": "k > 'x'"}})
BOTH = config({"name": "to-b", "consumer": "b"})


@pytest.mark.parametrize(
    ("earlier", "now", "scanned"),
    [
        ([ONLY_T, GONE], ONLY_T, set()),
        ([ONLY_T, GONE], BOTH, {"u"}),
        ([ONLY_T, GONE], SOME_OF_T, {"t"}),
        ([BOTH, ONLY_T, GONE, GONE], BOTH, {"u"}),
        ([ONLY_T, BOTH, GONE], BOTH, set()),
        ([ONLY_T, GONE], GONE, set()),
    ],
)
def test_what_it_did_not_send_before_is_sent_whole(
    earlier: list[Config], now: Config, scanned: set[str]
) -> None:
    """It goes on where it was, and rows of before would never come."""
    known = {"to-a": AgreementState("to-a", 1), "to-b": AgreementState("to-b", 2).retired()}
    state = replace(HubState(1, "g"), agreements=known, hub_epoch=9)
    old, documents = topology_of(earlier[-1], judges=False), [one.document() for one in earlier]
    before = LastTopology(topology_before(old, known, lambda: documents), at_ms=1)

    found = adopted(state, topology_of(now, judges=False), [1, 2], before=before)

    assert found.agreements["to-b"].scans == scanned
    assert found.agreements["to-a"].scans == set()
