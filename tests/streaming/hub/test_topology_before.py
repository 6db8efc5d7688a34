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
    later = topology_of(now, judges=False)
    before = LastTopology(topology_before(old, later, known, lambda: documents), at_ms=1)

    found = adopted(state, later, [1, 2], before=before)

    assert found.agreements["to-b"].scans == scanned
    assert found.agreements["to-a"].scans == set()


def with_columns(*names: str) -> Config:
    """A configuration in which table t has these columns besides its key."""
    tables = [
        {"name": "t", "key": ["k"], "columns": dict.fromkeys(["k", *names], "text")},
        {"name": "u", "key": ["k"], "columns": {"k": "text"}},
    ]
    return Config.model_validate(GONE.model_dump(exclude_unset=True) | {"tables": tables})


@pytest.mark.parametrize(
    ("earlier", "now", "scanned"),
    [
        ([["v", "w"], ["v"]], ["v", "w"], {"t"}),
        ([["v", "w"], ["v"], ["v"]], ["w", "v"], {"t"}),
        ([["v", "w"], ["v"]], ["v", "x"], set()),
        ([["v"], ["v", "w"]], ["v", "w"], set()),
        ([["v"]], ["v", "w"], set()),
        ([["v", "w"]], ["v"], set()),
    ],
)
def test_a_table_is_sent_whole_when_a_column_of_it_comes_back(
    earlier: list[list[str]], now: list[str], scanned: set[str]
) -> None:
    """What was sent meanwhile lacks its values, which stand in the state; of a new one none do."""
    configs = [with_columns(*names) for names in earlier]
    state = replace(HubState(1, "g"), agreements={"to-a": AgreementState("to-a", 1)}, hub_epoch=9)
    old, later = (topology_of(one, judges=False) for one in (configs[-1], with_columns(*now)))
    documents = [one.document() for one in configs]
    before = topology_before(old, later, ["to-a"], lambda: documents)

    found = adopted(state, later, [1, 2], before=LastTopology(before, at_ms=1))

    assert found.agreements["to-a"].scans == scanned
