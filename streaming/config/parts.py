"""What is wrong between the parts of a configuration, also of one whose fields are not all right.

It is read as far as it can be: a field that is missing or of another type says nothing here, its
own complaint does.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from streaming.config.cluster import AgreementConfig, TableConfig
from streaming.config.named_tables import chosen, unknown
from streaming.config.sections import HubConfig
from streaming.core.model.errors import FunctionError
from streaming.core.model.function import ConflictRule, parse_function

Entry = Mapping[str, Any]


def problems(data: Entry) -> Iterator[str]:
    """One sentence for each mistake; `data`: the sections by name, as TOML has them."""
    replicas, tables, agreements = (
        _entries(data, name) for name in ("replicas", "tables", "agreements")
    )
    for name in ("replicas", "tables"):
        if isinstance(data.get(name), Sequence) and not data[name]:
            yield f"{name}: give at least one"
    yield from _twice("replicas", "name", replicas)
    yield from _twice("replicas", "rid", replicas)
    yield from _twice("tables", "name", tables)
    yield from _twice("agreements", "name", agreements)
    yield from _twice("agreements", "consumer", agreements)
    yield from _named_as_the_hub(data, replicas)
    yield from _unknown_primaries(tables, _names(replicas))
    yield from _unknown_parts(agreements, _names(replicas), _names(tables))
    for index, replica in enumerate(replicas):
        yield from _unknown_tables(
            f"replicas[{index}].writes", replica.get("writes"), _names(tables)
        )
    for index, agreement in enumerate(agreements):
        yield from _several_datasets(index, agreement, tables)


def _entries(data: Entry, name: str) -> list[Entry]:
    """The entries of a list; one that is no table is an empty one, so that places stay."""
    found = data.get(name)
    listed = found if isinstance(found, list | tuple) else ()
    return [one if isinstance(one, Mapping) else {} for one in listed]


def _names(entries: Sequence[Entry]) -> list[str]:
    return [str(one["name"]) for one in entries if isinstance(one.get("name"), str)]


def _twice(section: str, field: str, entries: Sequence[Entry]) -> Iterator[str]:
    values = [one.get(field) for one in entries]
    for index, value in enumerate(values):
        if value is not None and value in values[:index]:
            first = values.index(value)
            yield f"{section}[{index}].{field} = {value!r}: {section}[{first}] has it too"


def _named_as_the_hub(data: Entry, replicas: Sequence[Entry]) -> Iterator[str]:
    section = data.get("hub")
    hub = section if isinstance(section, Mapping) else {}
    for index, replica in enumerate(replicas):
        for field in ("rid", "name"):
            own = hub.get(field, HubConfig.model_fields[field].default)
            if replica.get(field) == own:
                yield f"replicas[{index}].{field} = {own!r}: this is hub.{field}: give another"


def _unknown_primaries(tables: Sequence[Entry], replicas: Sequence[str]) -> Iterator[str]:
    for index, table in enumerate(tables):
        text = table.get("function", _default(TableConfig, "function"))
        try:
            function = parse_function(text) if isinstance(text, str) else None
        except FunctionError:
            continue
        if function is None or function.rule is not ConflictRule.PRIMARY or not replicas:
            continue
        if function.argument not in replicas:
            yield (
                f"tables[{index}].function = {text!r}: there is no such replica:"
                f" use one of {', '.join(replicas)}"
            )


def _unknown_parts(
    agreements: Sequence[Entry], replicas: Sequence[str], tables: Sequence[str]
) -> Iterator[str]:
    for index, agreement in enumerate(agreements):
        consumer = agreement.get("consumer")
        if replicas and isinstance(consumer, str) and consumer not in replicas:
            yield (
                f"agreements[{index}].consumer = {consumer!r}: there is no such replica:"
                f" use one of {', '.join(replicas)}"
            )
        yield from _unknown_tables(f"agreements[{index}].tables", _tables_of(agreement), tables)
        yield from _not_limited(index, agreement)
        own = sorted(chosen(_tables_of(agreement), tables))
        for name in ("rows", "columns", "masks"):
            filters = agreement.get(name)
            filtered = [*filters] if isinstance(filters, Mapping) else []
            yield from _unsent_tables(f"agreements[{index}].{name}", filtered, own, tables)


def _not_limited(index: int, agreement: Entry) -> Iterator[str]:
    """What does not go with a limit of when it sends."""
    place = f"agreements[{index}]"
    if agreement.get("packets") is not None:
        for field in ("delay_s", "hours", "bytes_per_s", "priority"):
            if agreement.get(field):
                yield (
                    f"{place}.{field}: packets are exported every packet_every_s seconds, or on"
                    " order: leave it out"
                )
    if not agreement.get("delay_s"):
        return
    place += ".delay_s"
    if agreement.get("compare") is not None:
        yield (
            f"{place}: a consumer that is delayed is not compared, for it has other rows than the"
            " hub: leave out compare"
        )


def _unknown_tables(place: str, named: object, tables: Sequence[str]) -> Iterator[str]:
    if tables:
        yield from (f"{place}: {fault}" for fault in unknown(_texts(named), tables))


def _unsent_tables(
    place: str, named: Sequence[object], own: Sequence[str], tables: Sequence[str]
) -> Iterator[str]:
    """What names no table that the agreement sends."""
    for one in _texts([*named]):
        if own and chosen([one], tables) and not chosen([one], own):
            yield (
                f"{place}: {one!r} is not sent by this agreement: name it in tables, or leave it"
                " out here"
            )
        else:
            yield from _unknown_tables(place, [one], own)


def _tables_of(agreement: Entry) -> list[str]:
    return _texts(agreement.get("tables", _default(AgreementConfig, "tables")))


def _texts(named: object) -> list[str]:
    return [one for one in named if isinstance(one, str)] if isinstance(named, list | tuple) else []


def _several_datasets(index: int, agreement: Entry, tables: Sequence[Entry]) -> Iterator[str]:
    served = chosen(_tables_of(agreement), _names(tables))
    datasets: dict[str, list[str]] = {}
    for entry in tables:
        name, dataset = entry.get("name"), entry.get("dataset", _default(TableConfig, "dataset"))
        if isinstance(name, str) and isinstance(dataset, str) and name in served:
            datasets.setdefault(dataset, []).append(name)
    if len(datasets) > 1:
        found = "; ".join(f"{', '.join(t)} of {d!r}" for d, t in sorted(datasets.items()))
        yield (
            f"agreements[{index}].tables: an agreement serves one data set, and these tables are of"
            f" several ({found}): name the tables of one"
        )


def _default(section: type[AgreementConfig] | type[TableConfig], field: str) -> object:
    return section.model_fields[field].default
