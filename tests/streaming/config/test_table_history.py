"""Types and keys of a table are as its rows in the state have them."""

from pathlib import Path

import pytest

from streaming.config.config import Config
from streaming.config.errors import check
from streaming.config.history import config_history, history_faults
from streaming.core.model.errors import ConfigError
from streaming.core.model.table import ColumnType

OLD = {"id": "int64", "part": "int32", "credit": "decimal", "n": "int32", "at": "timestamp"}


def config(
    columns: dict[str, str], key: tuple[str, ...] = ("id", "part"), function: str = "EPOCH"
) -> Config:
    """A configuration with one table of these columns."""
    table = {"name": "t", "key": key, "columns": columns, "function": function}
    return Config.model_validate(
        {
            "hub": {"state": Path("state")},
            "kafka": {"bootstrap_servers": "localhost:9092"},
            "replicas": [{"name": "a", "rid": 1}],
            "tables": [table],
        }
    )


def refusals(wanted: Config, *earlier: Config) -> list[str]:
    """What is wrong with a configuration behind these."""
    return list(history_faults(wanted, config_history(one.document() for one in earlier)))


@pytest.mark.parametrize(
    "wanted",
    [
        config(OLD),
        config(OLD | {"n": "float64"}),
        config(OLD | {"colour": "text"}),
        config({"part": "int32", "id": "int64"}),
    ],
    ids=["the same", "an int32 is written as a float64 is", "a new column", "columns removed"],
)
def test_what_keeps_the_values_is_accepted(wanted: Config) -> None:
    """A schema grows, and the rows in the state are still rows of it."""
    assert not refusals(wanted, config(OLD))


@pytest.mark.parametrize(
    ("column", "kind"),
    [(c, k) for c in ("credit", "n", "at") for k in ColumnType if k.value != OLD[c]],
)
def test_another_type_is_refused(column: str, kind: ColumnType) -> None:
    """Rows would hold values that are none: each refresh of them would be refused."""
    if (OLD[column], kind) == ("int32", ColumnType.FLOAT64):
        kind = ColumnType.INT64

    (fault,) = refusals(config(OLD | {column: kind.value}), config(OLD))

    assert fault.startswith(
        f"tables[0].columns.{column} = '{kind}': the state has the rows of table t with column"
        f" {column} as {OLD[column]}, and these values are not written as {kind}:"
        f" set {column} = '{OLD[column]}'; for {kind} add a column of another name"
    )


def test_the_type_of_a_key_column_is_never_another() -> None:
    """Rows are found by the text of their keys, and 5 is another text than 5.0."""
    (fault,) = refusals(config(OLD | {"part": "float64"}), config(OLD))

    assert "set part = 'int32'; replicate the rows as a table of another name" in fault


@pytest.mark.parametrize("key", [("id",), ("part", "id"), ("id", "part", "n")])
def test_another_key_is_refused(key: tuple[str, ...]) -> None:
    """No row in the state would be found, and each would be there twice."""
    with pytest.raises(ConfigError) as refused:
        check(history_faults(config(OLD, key), config_history([config(OLD).document()])))

    assert str(refused.value) == (
        f"tables[0].key = [{', '.join(key)}]: the state finds the rows of table t by its key"
        ' (id, part), and would find none of them: set key = ["id","part"], or replicate the rows'
        " as a table of another name"
    )


def test_a_removed_column_keeps_its_type() -> None:
    """The rows still have its values, so it does not come back as something else."""
    without = {name: kind for name, kind in OLD.items() if name != "credit"}

    (fault,) = refusals(config(OLD | {"credit": "text"}), config(OLD), config(without))

    assert "column credit as decimal" in fault


def test_a_hub_that_already_has_another_type_goes_on() -> None:
    """What an earlier version let through is not refused at the next start."""
    wider = config(OLD | {"n": "float64"})

    assert not refusals(wider, config(OLD), wider)


def test_a_function_that_compares_a_new_column_is_warned_of() -> None:
    """Until they are written again, rows have no value to compare."""
    history = config_history([config(OLD).document()])
    wanted = config(OLD | {"changed": "int64"}, function="MAX(changed)")

    (warning,) = history.warnings(wanted)

    assert warning.startswith("table t: MAX(changed) compares column changed, which the rows in")
    assert not list(history.warnings(config(OLD, function="MAX(n)")))
