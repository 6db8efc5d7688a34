"""A rid belongs to one replica for ever, and a consumer to its data set: as it was stored."""

from pathlib import Path

import pytest

from streaming.config.config import Config
from streaming.config.errors import check
from streaming.config.history import config_history, history_faults
from streaming.core.model.errors import ConfigError
from streaming.core.model.table import ColumnType


def config(*replicas: tuple[str, int], hub_rid: int = 65534, prefix: str = "p.") -> Config:
    """A configuration with these replicas, one table, and an agreement for each replica."""
    return Config.model_validate(
        {
            "hub": {"rid": hub_rid, "topic_prefix": prefix, "state": Path("state")},
            "kafka": {"bootstrap_servers": "localhost:9092"},
            "replicas": [{"name": name, "rid": rid} for name, rid in replicas],
            "tables": [{"name": "t", "key": ["k"], "columns": {"k": "text"}}],
            "agreements": [{"name": f"to-{name}", "consumer": name} for name, _ in replicas],
        }
    )


STORED = [config(("a", 1), ("b", 2), hub_rid=99, prefix="old."), config(("a", 1), ("c", 3))]
"""Two versions: b was removed by the second, and the hub's rid and the prefix changed."""


@pytest.mark.parametrize(
    "replicas",
    [(("a", 1), ("c", 3)), (("a", 1),), (("b", 2), ("a", 1)), (("a", 1), ("new", 4))],
)
def test_known_and_new_replicas_are_accepted(replicas: tuple[tuple[str, int], ...]) -> None:
    """Also one that was removed and is back under its rid."""
    check(history_faults(config(*replicas), config_history(one.document() for one in STORED)))


@pytest.mark.parametrize(
    ("wanted", "complaint"),
    [
        (
            config(("a", 1), ("c", 7)),
            (
                "replicas[1].rid = 7: the state knows replica c by rid 3, and a rid is never"
                " changed: set rid = 3, or give a new database a new name"
            ),
        ),
        (
            config(("b", 5)),
            (
                "replicas[0].rid = 5: the state knows replica b by rid 2, and a rid is never"
                " changed: set rid = 2, or give a new database a new name"
            ),
        ),
        (
            config(("new", 2)),
            (
                "replicas[0].rid = 2: in the state this rid belongs to replica b, and a rid is"
                " never given again: give new another"
            ),
        ),
        (
            config(("new", 99)),
            "replicas[0].rid = 99: in the state this rid is the hub's own: give new another",
        ),
        (
            config(("a", 1), hub_rid=3),
            "hub.rid = 3: in the state this rid belongs to replica c: give the hub another",
        ),
    ],
)
def test_another_rid_is_refused_with_one_sentence(wanted: Config, complaint: str) -> None:
    """Changes of one database would be taken for those of another."""
    with pytest.raises(ConfigError) as refused:
        check(history_faults(wanted, config_history(one.document() for one in STORED)))

    assert str(refused.value) == complaint


def test_the_topic_of_a_retired_replica_is_known() -> None:
    """Records of it may be needed; it has the prefix of the time."""
    history = config_history(one.document() for one in STORED)

    assert history.retired_topics(config(("a", 1))) == {"old.changes.b": 2, "p.changes.c": 3}


def test_what_is_missing_is_named_in_the_order_of_its_first_version() -> None:
    """A table, an agreement or a replica that a running state has."""
    history = config_history(one.document() for one in STORED)

    assert [
        line.partition(" is in the state")[0] for line in history.warnings(config(("c", 3)))
    ] == [
        "replica a",
        "replica b",
        "agreement to-a",
        "agreement to-b",
    ]


def test_a_new_state_knows_nothing() -> None:
    """The first start takes any configuration."""
    history = config_history([])

    check(history_faults(config(("a", 1)), history))
    assert list(history.warnings(config(("a", 1)))) == []


def of_datasets(t: str, u: str, **tables_of: list[str]) -> Config:
    """Tables t and u in these data sets, and an agreement for each replica with its tables."""
    found = config(*((name, rid) for rid, name in enumerate(tables_of, 1))).model_dump()
    (table,) = found["tables"]
    found["tables"] = [table | {"dataset": t}, table | {"name": "u", "dataset": u}]
    for agreement in found["agreements"]:
        agreement["tables"] = tables_of[agreement["consumer"]]
    return Config.model_validate(found)


def test_a_consumer_does_not_move_to_another_data_set() -> None:
    """By its position it would seem to have changes of it that it never was sent."""
    history = config_history([of_datasets("one", "two", a=["t"], b=["u"]).document()])

    check(history_faults(of_datasets("one", "two", a=["t"], b=["u"], new=["u"]), history))
    check(history_faults(of_datasets("one", "one", a=["*"]), history))
    with pytest.raises(ConfigError) as refused:
        check(history_faults(of_datasets("one", "two", a=["u"], b=["u"]), history))

    assert str(refused.value) == (
        "agreements[0].tables: a was sent data set one and would be sent two from the middle on:"
        " give it the tables of one again, or send two to a new replica with an empty database"
    )


def test_a_table_of_another_data_set_takes_no_consumer_along() -> None:
    """The same, by an edit of the table."""
    history = config_history([of_datasets("one", "two", a=["t"]).document()])

    with pytest.raises(ConfigError, match="a was sent data set one and would be sent two"):
        check(history_faults(of_datasets("two", "two", a=["t"]), history))


def masking(masks: dict[str, dict[str, str]]) -> Config:
    """A table with a column beside its key, and an agreement that sends it so."""
    found = config(("a", 1), ("b", 2)).model_dump()
    found["tables"][0]["columns"] = {"k": "text", "v": "text"}
    found["agreements"][0]["masks"] = masks
    return Config.model_validate(found)


def test_what_was_ever_sent_masked_is_known() -> None:
    """What its consumer wrote meanwhile has the masks in it, also when they are gone."""
    versions = [masking({}), masking({"*": {"v": "constant:***"}}), masking({})]

    history = config_history(one.document() for one in versions)

    assert history.masked == {"a": {"t"}, "b": frozenset()}


def with_columns(*names: str) -> str:
    """A stored configuration whose table has these columns besides its key."""
    found = config(("a", 1))
    columns = dict.fromkeys(("k", *names), ColumnType.TEXT)
    table = found.tables[0].model_copy(update={"columns": columns})
    return found.model_copy(update={"tables": (table,)}).document()


@pytest.mark.parametrize(
    ("stored", "left_out"),
    [
        ([("v", "w"), ("v",), ("v", "w")], {"w"}),
        ([("v", "w"), ("v",)], {"w"}),
        ([("v",), ("v", "w")], set()),
        ([("v", "w"), (), ("v",)], {"v", "w"}),
    ],
)
def test_a_column_that_was_left_out_for_a_while_is_known(
    stored: list[tuple[str, ...]], left_out: set[str]
) -> None:
    """Rows that were written meanwhile have lost its value at the hub."""
    history = config_history(with_columns(*names) for names in stored)

    assert history.tables["t"].left_out == left_out
