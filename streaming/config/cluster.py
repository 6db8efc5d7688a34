"""The replicas, tables and agreements of the configuration."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from streaming.config.comparison import CompareConfig
from streaming.config.section import Identifier, Name, NonNegative, Section
from streaming.core.model.change import HUB_RID
from streaming.core.model.errors import FunctionError
from streaming.core.model.function import ConflictRule, parse_function
from streaming.core.model.table import DEFAULT_DATASET, ColumnType, OnHidden, OnRefused, Table
from streaming.core.state.sending_times import SendingTimes, parse_hours


class ReplicaConfig(Section):
    """A database that takes local writes."""

    name: Name
    """Its name: lower-case letters, digits, _ and -; its topic is <prefix>changes.<name>."""
    rid: int = Field(ge=1, lt=HUB_RID)
    """Its replica id, which is in each of its CSNs."""
    oid: str | None = None
    """Its id in the epoch number matrix."""
    host: str | None = None
    """Its host in the epoch number matrix."""
    writes: tuple[str, ...] | None = None
    """The tables that it may write, by name or by pattern, as `tenant_*.orders`. "*": all. A change
    of another is quarantined as `rights`. By default those of its agreement, or all where it has
    none."""


class TableConfig(Section):
    """A replicated table: the types of its values on the wire, and who wins a conflict."""

    later: ClassVar[tuple[str, ...]] = ("filters", "always_scan")

    name: Identifier
    """Its name."""
    key: tuple[Identifier, ...] = Field(min_length=1)
    """Its key columns, in the order in which a key is written."""
    columns: dict[Identifier, ColumnType] = Field(min_length=1)
    """All its columns, key columns included, with their types, in the order of its rows."""
    function: str = "EPOCH"
    """Who wins when a change is concurrent with the row: EPOCH, MAX(column), module:function ..."""
    dataset: Name = DEFAULT_DATASET
    """Its data set; each has a RUV and pending lists of its own, and an agreement serves one."""
    on_refused: OnRefused = OnRefused.SKIP
    """When a replica's database refuses a row of it: "skip" lists the row as differing; "stop"
    sends that replica nothing more until `slackwater resume`; "refresh" sends the row again by
    itself."""
    on_hidden: OnHidden = OnHidden.JUDGE
    """When a replica writes a row that its filter hides: "judge" takes the write as concurrent;
    "quarantine" keeps it from everybody (docs/filters.md)."""

    @field_validator("function")
    @classmethod
    def _known_function(cls, value: str) -> str:
        try:
            parse_function(value)
        except FunctionError as error:
            raise PydanticCustomError("function", "{text}", {"text": str(error)}) from None
        return value

    @model_validator(mode="after")
    def _columns_fit(self) -> Self:
        if found := list(self._column_faults()):
            raise PydanticCustomError("parts", "{text}", {"text": "\n".join(found)})
        return self

    def _column_faults(self) -> Iterator[str]:
        for column in self.key:
            if column not in self.columns:
                yield (
                    f"key column {column!r} of table {self.name!r} is not in its columns: add it"
                    " there"
                )
        if len(set(self.key)) < len(self.key):
            yield "a key column appears twice in the key: remove one"
        compared = parse_function(self.function).column
        if compared is not None and compared not in self.columns:
            yield (
                f"function {self.function} of table {self.name!r} compares a column that the table"
                " lacks"
            )

    def table(self, rids: Mapping[str, int]) -> Table:
        """The table as the hub's core knows it; `rids`: replica name -> rid."""
        function = parse_function(self.function)
        if function.rule is ConflictRule.PRIMARY:
            function = replace(function, replica=rids[function.argument or ""])
        return Table(
            self.name,
            self.key,
            dict(self.columns),
            function,
            self.dataset,
            self.on_refused,
            self.on_hidden,
        )


class AgreementConfig(Section):
    """What one consumer is sent."""

    later: ClassVar[tuple[str, ...]] = ("filters", "filter", "where")

    name: Name
    """Its name; the consumer reads <prefix>updates.<name>."""
    consumer: str
    """The replica that is sent the changes."""
    tables: tuple[str, ...] = Field(default=("*",), min_length=1)
    """The tables whose changes it is sent, all of one data set, by name or by pattern: in
    `tenant_*.orders` the `*` stands for any text. "*": all that there are."""
    rows: dict[Identifier, str] = Field(default={})
    """Which rows of a table it is sent: a condition in SQL on the table's columns, by the table's
    name or a pattern of names, of which the first holds that matches:
    `orders = "region = 'eu' AND total > 10"`. By default all (docs/filters.md)."""
    columns: dict[Identifier, tuple[Identifier, ...]] = Field(default={})
    """Which columns of a table it is sent, those of the key among them, by the table's name or a
    pattern of names, of which the first holds that matches: `customers = ["id", "name"]`. By
    default all (docs/filters.md)."""
    masks: dict[Identifier, dict[Identifier, str]] = Field(default={})
    """What is sent in place of a column's value, by table as in `columns`: "null",
    "constant:VALUE", or "hash" (HMAC-SHA256 with `masking.hash_secret`, of text and bytes):
    `customers = { email = "hash" }`. The consumer may not write such a table (docs/filters.md)."""
    send: tuple[Literal["insert", "update", "delete"], ...] = ("insert", "update", "delete")
    """What it is sent of its tables. An archive keeps what others delete:
    `send = ["insert", "update"]` (docs/filters.md)."""
    packets: Path | None = None
    """The folder of its packets, for a consumer that Kafka does not reach: the hub writes there
    what would go to the topic, and takes from there what the consumer wrote. A relative path is in
    this file's folder. By default the consumer reads its topic."""
    packet_every_s: NonNegative = 10
    """How many seconds after a packet the next one is exported, if there is something to say; 0:
    only by `slackwater export`."""
    delay_s: NonNegative = 0
    """How many seconds after its commit a change is sent; 0: at once. So its consumer stands as
    the others did then, until `slackwater resume --now` (docs/sending.md)."""
    hours: str | None = None
    """The hours of the day at which anything is sent, by the clock of a zone:
    `22:00-06:00 Europe/Paris`. By default all (docs/sending.md)."""
    bytes_per_s: NonNegative = 0
    """How many bytes are sent a second, on average; 0: any number. A page goes as a whole, and then
    nothing for as long as it takes at that rate."""
    priority: NonNegative = 0
    """Where a batch sends something to several agreements, one of a higher priority is sent it
    first (docs/sending.md)."""
    compare: CompareConfig | None = None
    """The comparison of its consumer with the hub; none without it."""

    @field_validator("send")
    @classmethod
    def _is_sent_rows(cls, send: tuple[str, ...]) -> tuple[str, ...]:
        """Refuse a list without inserts or updates: its rows would be those of no moment."""
        if lacking := {"insert", "update"} - {*send}:
            raise ValueError(
                f'{" and ".join(sorted(lacking))} cannot be left out, only "delete" can: write'
                ' send = ["insert", "update"], or leave it out to send everything'
            )
        return send

    @property
    def sends_deletes(self) -> bool:
        """Return whether its consumer is sent deletes."""
        return "delete" in self.send

    @property
    def packet_every_ms(self) -> int | None:
        """How often a packet is exported, in milliseconds; None: there are none."""
        return None if self.packets is None else self.packet_every_s * 1_000

    @property
    def times(self) -> SendingTimes:
        """When it sends what is committed."""
        return SendingTimes(self.delay_s * 1_000, parse_hours(self.hours) if self.hours else None)

    @field_validator("hours")
    @classmethod
    def _hours_are_read(cls, text: str | None) -> str | None:
        if text is not None:
            parse_hours(text)
        return text
