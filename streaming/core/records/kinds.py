"""Every kind of record in a changes topic, with its fields: the wire's grammar as one table.

The hub's check, the decoder and the encoder all read this table, so a new field of a kind is added
here and to its value (record.py). A new kind also to `Intake` and to the agent's `OwnTopic`, where
mypy asks for it, and to `says_nothing_of_rows` (core/intake/stopped.py) if it tells of no row.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from streaming.core.model.change import Change
from streaming.core.records.record import (
    Abort,
    Applied,
    Commit,
    Goodbye,
    Heartbeat,
    Hello,
    LocalWrites,
    PublishedSchema,
    Record,
    RecordKind,
    Refused,
    Snapshot,
)


class FieldType(StrEnum):
    """What the JSON value of a field must be."""

    COUNTER = "an integer from 0 on"
    """below 2^63"""
    ORDINAL = "an integer from 1 on"
    """below 2^63"""
    BOOLEAN = "true or false"
    CSN = "a CSN: a JSON string of 20 lower-case hex digits"
    TEXT = "a JSON string"
    LABEL = "a JSON string of at most 100 characters"
    ID = "a JSON string of at most 200 characters"
    VERSIONS = "an array of at most 100 integers from 1 on"
    NAMES = "an array of at most 10,000 JSON strings of at most 400 characters"
    OBJECT = "a JSON object"
    """inside the hub its canonical text"""
    WRITES = "an object of objects with rows and last_ms, integers from 0 on"
    """table -> what stays in the database; inside the hub its canonical text"""
    RUV = "an array of lines in the text form of 389 Directory Server"


class FieldPresence(StrEnum):
    """Whether a record must have a field."""

    REQUIRED = "required"
    """missing or null: the record is invalid"""
    NULLABLE = "nullable"
    """may be missing or null; written as null"""
    OPTIONAL = "optional"
    """may be missing or null; then it is not written"""
    ONE_OF = "one of"
    """exactly one of the fields with this mark must be there"""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a kind of record."""

    name: str
    type: FieldType
    need: FieldPresence = FieldPresence.REQUIRED


@dataclass(frozen=True, slots=True)
class RecordForm:
    """A kind of record: the type of its values, and its fields in the order of writing.

    Every record has v, kind and session in front of them.
    """

    type: type[Record]
    fields: tuple[Field, ...]

    @property
    def required(self) -> tuple[str, ...]:
        """The names of the required fields."""
        return tuple(field.name for field in self.fields if field.need is FieldPresence.REQUIRED)

    @property
    def alternatives(self) -> tuple[str, ...]:
        """The names of the fields of which one must be there; empty: the kind has no such field."""
        return tuple(field.name for field in self.fields if field.need is FieldPresence.ONE_OF)


_PRIM_CSN = Field("prim_csn", FieldType.CSN)
_EPOCH = Field("epoch", FieldType.COUNTER)
_UNPUBLISHED = Field("unpublished", FieldType.COUNTER, FieldPresence.OPTIONAL)
_POSITION = (
    _EPOCH,
    Field("covers", FieldType.COUNTER),
    Field("generation", FieldType.COUNTER),
    Field("ruv", FieldType.RUV),
)

KINDS: Mapping[RecordKind, RecordForm] = {
    RecordKind.CHANGE: RecordForm(
        Change,
        (
            Field("csn", FieldType.CSN),
            Field("prim_csn", FieldType.CSN, FieldPresence.OPTIONAL),
            Field("app", FieldType.LABEL, FieldPresence.OPTIONAL),
            _EPOCH,
            Field("table", FieldType.TEXT),
            Field("key", FieldType.OBJECT, FieldPresence.NULLABLE),  # none in a truncate
            Field("op", FieldType.TEXT),
            Field("before", FieldType.OBJECT, FieldPresence.OPTIONAL),
            Field(
                "after", FieldType.OBJECT, FieldPresence.NULLABLE
            ),  # none in a delete or truncate
            Field("opno", FieldType.ORDINAL, FieldPresence.OPTIONAL),
        ),
    ),
    RecordKind.COMMIT: RecordForm(Commit, (_PRIM_CSN,)),
    RecordKind.ABORT: RecordForm(Abort, (_PRIM_CSN,)),
    RecordKind.APPLIED: RecordForm(
        Applied, (*_POSITION, Field("reached", FieldType.COUNTER, FieldPresence.OPTIONAL))
    ),
    RecordKind.HELLO: RecordForm(
        Hello,
        (
            *_POSITION,
            Field("own", FieldType.CSN, FieldPresence.NULLABLE),
            Field("lost", FieldType.BOOLEAN),
            Field("versions", FieldType.VERSIONS, FieldPresence.OPTIONAL),
            Field("reinit", FieldType.BOOLEAN, FieldPresence.OPTIONAL),
            Field("unreplicated", FieldType.NAMES, FieldPresence.OPTIONAL),
            Field("reached", FieldType.COUNTER, FieldPresence.OPTIONAL),
            Field("snapshot", FieldType.ID, FieldPresence.OPTIONAL),
            _UNPUBLISHED,
            Field("agreement", FieldType.ID, FieldPresence.OPTIONAL),
            Field("ruv_of", FieldType.ID, FieldPresence.OPTIONAL),
        ),
    ),
    RecordKind.HEARTBEAT: RecordForm(Heartbeat, (_EPOCH, _UNPUBLISHED)),
    RecordKind.GOODBYE: RecordForm(Goodbye, (_EPOCH, Field("unpublished", FieldType.COUNTER))),
    RecordKind.REFUSED: RecordForm(
        Refused,
        (
            Field("hub_epoch", FieldType.COUNTER),
            Field("csn", FieldType.CSN),
            Field("table", FieldType.TEXT),
            Field("key", FieldType.OBJECT),
            Field("code", FieldType.TEXT),
            Field("text", FieldType.TEXT),
        ),
    ),
    RecordKind.SNAPSHOT: RecordForm(
        Snapshot,
        (
            Field("begin", FieldType.OBJECT, FieldPresence.ONE_OF),
            Field("row", FieldType.OBJECT, FieldPresence.ONE_OF),
            Field("end", FieldType.OBJECT, FieldPresence.ONE_OF),
        ),
    ),
    RecordKind.SCHEMA: RecordForm(
        PublishedSchema,
        (
            Field("digest", FieldType.ID),
            Field("document", FieldType.OBJECT, FieldPresence.OPTIONAL),
            Field("lacking", FieldType.NAMES, FieldPresence.OPTIONAL),
        ),
    ),
    RecordKind.LOCAL_WRITES: RecordForm(LocalWrites, (Field("tables", FieldType.WRITES),)),
}
"""The form of each kind of record."""

KIND_OF: Mapping[type[Record], RecordKind] = {form.type: kind for kind, form in KINDS.items()}
"""The kind of a record of this type."""

NUMBERS: Mapping[str, FieldType] = {
    field.name: field.type
    for form in KINDS.values()
    for field in form.fields
    if field.type in (FieldType.COUNTER, FieldType.ORDINAL, FieldType.BOOLEAN)
}
"""The numbers and booleans: each has one type in all kinds, and is checked in every kind."""
