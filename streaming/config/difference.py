"""What two configurations have otherwise, and what it causes where a hub has run with the first."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from streaming.config.cluster import AgreementConfig
from streaming.config.config import Config
from streaming.config.holding import HOLDS, HoldsFrom
from streaming.config.named_tables import by_table
from streaming.core.text.wording import as_count

_ENTRIES = ("replicas", "tables", "agreements")
"""The lists; an entry is known by its name, wherever it stands."""
_OPTIONS = ("spark", "kafka.options", "tables[].columns")
"""What is compared name by name, though it is one field."""
_SECTIONS = {path.rpartition(".")[0] for path in HOLDS}


class ValueChange(StrEnum):
    """What became of a value."""

    ADDED = "added"
    """the first configuration does not have it"""
    REMOVED = "removed"
    """the second does not have it"""
    CHANGED = "changed"
    """both have it, otherwise"""


@dataclass(frozen=True, slots=True)
class ConfigDifference:
    """One value that differs, such as tables[customers].function, or a whole entry of a list.

    `before`, `after`: as JSON has them, secrets hidden; None: it is not there. `causes`: what it
    does besides holding; "": nothing.
    """

    path: str
    kind: ValueChange
    before: Any
    after: Any
    holds: HoldsFrom
    causes: str = ""


def differences(before: Config, after: Config) -> list[ConfigDifference]:
    """What the second configuration has otherwise, in the order of the sections.

    A secret is never compared: the state keeps none. The order of entries says nothing; that of a
    table's columns does, for its rows are written in it.
    """
    return [*_of_fields("", "", before.shown(), after.shown(), _Causes(before, after))]


def _of_fields(
    path: str, declared: str, before: Mapping[str, Any], after: Mapping[str, Any], causes: "_Causes"
) -> Iterator[ConfigDifference]:
    """The differences of a section; `declared`: its path among HOLDS."""
    for name, old in before.items():
        at, field, new = f"{path}.{name}".lstrip("."), f"{declared}.{name}".lstrip("."), after[name]
        if field in _ENTRIES:
            yield from _of_entries(field, old, new, causes)
        elif field in _OPTIONS:
            yield from _of_options(at, field, old, new, causes)
        elif field in _SECTIONS and old is not None and new is not None:
            yield from _of_fields(at, field, old, new, causes)
        elif old != new:
            yield _difference(at, field, old, new, causes)


def _of_entries(
    section: str, before: Sequence[Any], after: Sequence[Any], causes: "_Causes"
) -> Iterator[ConfigDifference]:
    old, new = ({one["name"]: one for one in entries} for entries in (before, after))
    for name in dict.fromkeys([*old, *new]):
        path = f"{section}[{name}]"
        if name in old and name in new:
            yield from _of_fields(path, f"{section}[]", old[name], new[name], causes)
        else:
            gone, come = _brief(old.get(name)), _brief(new.get(name))
            kind = ValueChange.REMOVED if come is None else ValueChange.ADDED
            holds, why = HOLDS[f"{section}[].name"], causes.of_entry(section, name, kind)
            if "compare" in (come or gone or {}):  # its process beside the hub starts with the hub
                holds = HOLDS["agreements[].compare"]
            yield ConfigDifference(path, kind, gone, come, holds, why)


def _brief(entry: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """An entry without its name and without what it does not set."""
    if entry is None:
        return None
    return {
        name: value for name, value in entry.items() if name != "name" and value not in (None, {})
    }


def _of_options(
    path: str, field: str, before: Mapping[str, Any], after: Mapping[str, Any], causes: "_Causes"
) -> Iterator[ConfigDifference]:
    for name in dict.fromkeys([*before, *after]):
        old, new = before.get(name), after.get(name)
        if old != new:
            yield _difference(f"{path}.{name}", field, old, new, causes)
    if before == after and [*before] != [*after]:
        yield _difference(path, field, [*before], [*after], causes)


def _difference(
    path: str, field: str, before: object, after: object, causes: "_Causes"
) -> ConfigDifference:
    kind = ValueChange.CHANGED
    if before is None or after is None:
        kind = ValueChange.ADDED if before is None else ValueChange.REMOVED
    return ConfigDifference(
        path, kind, before, after, HOLDS[field], causes.of_field(path, field, kind)
    )


@dataclass(frozen=True, slots=True)
class _Causes:
    """What differences cause, beyond the value that holds then."""

    before: Config
    after: Config

    def of_entry(self, section: str, name: str, kind: ValueChange) -> str:
        """What it causes that an entry was added or removed."""
        match section, kind:
            case "replicas", ValueChange.ADDED:
                return "its topic is created if it is missing, and read"
            case "replicas", _:
                return "retired: its topic is not read any more; added again, it goes on there"
            case "agreements", ValueChange.ADDED:
                return f"{self._consumer(self.after, name)} gets every row of its tables"
            case "agreements", _:
                return f"retired: {self._consumer(self.before, name)} is sent nothing more by it"
            case _, ValueChange.ADDED:
                return f"{self._readers(self.after, name)}; start every agent with it, first"
            case _:
                return "its changes are quarantined as `table`; wait for `slackwater level` before"

    def of_field(self, path: str, field: str, kind: ValueChange) -> str:
        """What it causes that a field was changed."""
        name = path.partition("[")[2].partition("]")[0]
        match field:
            case "tables[].function":
                return "decides what is judged from then on; what was judged stays as it is"
            case "tables[].columns" if kind is ValueChange.REMOVED:
                return (
                    "a change that has it is quarantined as `column`, and goes on once it is back;"
                    " start every agent with it"
                )
            case "tables[].columns":
                return "start every agent with it"
            case "agreements[].consumer":
                return f"it starts anew: {self._consumer(self.after, name)} gets every row"
            case "agreements[].tables":
                return self._of_tables(name)
            case "agreements[].delay_s":
                return self._of_delay(name)
            case "agreements[].send":
                return self._of_send(name)
            case "agreements[].rows" | "agreements[].columns" | "agreements[].masks":
                return self._of_filter(name, field.rpartition(".")[2])
            case "retention.keep_h" | "hub.replay_window_h":
                return self._of_history()
            case "hub.topic_prefix":
                return "all topics have other names, and what is in those of now is not read"
            case "hub.state":
                return "another state: the hub works with what is there, and not with this one"
            case _:
                return ""

    def _of_history(self) -> str:
        kept = [
            config.retention.keep_ms(config.hub.replay_window_h)
            for config in (self.before, self.after)
        ]
        if kept[1] >= kept[0]:
            return ""
        return "what is older is purged for good: undo, replay and --as-of do not reach it"

    def _of_tables(self, name: str) -> str:
        old, new = (_tables_of(config, name) for config in (self.before, self.after))
        consumer = self._consumer(self.after, name)
        said = []
        if added := sorted(new - old):
            said.append(
                f"{consumer} gets every row of {_named(added)}, and loses those that the hub does"
                " not have"
            )
        if removed := sorted(old - new):
            said.append(f"{consumer} keeps its rows of {_named(removed)} as they are")
        return "; ".join(said)

    def _of_filter(self, name: str, kind: str) -> str:
        old, new = (_filters_of(config, name, kind) for config in (self.before, self.after))
        others = sorted(table for table in old.keys() & new if old[table] != new[table])
        if not others:
            return ""
        consumer = self._consumer(self.after, name)
        hides = kind == "rows" and any(new[table] is not None for table in others)
        lost = ", and loses the rows that it is not shown" if hides else ""
        masked = [table for table in others if kind == "masks" and new[table] is not None]
        if masked:
            return f"{consumer} gets {_named(others)} anew, and may not write {_named(masked)}"
        agent = "; start its agent with it" if kind == "columns" else ""
        return (
            f"{consumer} gets {_named(others)} anew{lost}; what it writes there meanwhile is"
            f" {'rejected' if kind == 'masks' else 'concurrent'}{agent}"
        )

    def _of_send(self, name: str) -> str:
        consumer = self._consumer(self.after, name)
        both = (_agreement(config, name) for config in (self.before, self.after))
        match [one.sends_deletes for one in both]:
            case [True, False]:
                return f"what others delete stays at {consumer} from then on"
            case [False, True]:
                return (
                    f"{consumer} gets every row of its tables anew, and loses those that the hub"
                    " does not have; what it writes there meanwhile is concurrent"
                )
            case _:
                return ""

    def _of_delay(self, name: str) -> str:
        old, new = (_agreement(config, name).delay_s for config in (self.before, self.after))
        consumer = self._consumer(self.after, name)
        if new < old:
            return f"{consumer} is sent what is older than {new} s at once"
        return f"{consumer} is sent nothing for {new - old} s; what it has stays"

    def _readers(self, config: Config, table: str) -> str:
        """To whom a new table is sent."""
        names = [one.name for one in config.agreements if table in config.tables_of(one)]
        return f"sent by {as_count(len(names), 'agreement')}"

    def _consumer(self, config: Config, name: str) -> str:
        return _agreement(config, name).consumer


def _agreement(config: Config, name: str) -> AgreementConfig:
    """The agreement of this name, which the configuration has."""
    return next(one for one in config.agreements if one.name == name)


def _tables_of(config: Config, name: str) -> frozenset[str]:
    return config.tables_of(_agreement(config, name))


def _filters_of(config: Config, name: str, kind: str) -> dict[str, object]:
    """Table -> the condition of its rows, or its columns; None: all of them."""
    one = _agreement(config, name)
    tables = config.tables_of(one)
    match kind:
        case "rows":
            return {**dict.fromkeys(tables), **by_table(one.rows, tables)}
        case "masks":
            return {**dict.fromkeys(tables), **by_table(one.masks, tables)}
        case _:
            sent = {name: known.columns for name, known in config.column_filters(one).items()}
            return {**dict.fromkeys(tables), **sent}


def _named(tables: list[str]) -> str:
    return f"table {tables[0]}" if len(tables) == 1 else f"tables {', '.join(tables)}"
