"""The header of a packet file: who it is from and for, what it continues, and what it holds.

It is the first line of the file, JSON that `head -1 FILE | jq` shows. A reader refuses a member
that is missing, unknown or of another type: a packet that is understood in part loses the rest.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Self

from streaming.core.model import foreign_json
from streaming.core.model.csn import CSN_PATTERN
from streaming.core.model.errors import WireError
from streaming.core.model.values import json_text

VERSION = 1
"""The version of the packet file; a reader refuses a larger one."""

HEADER_BYTES = 2**20
"""How long the first line may be, without its line feed."""

_CSN = re.compile(CSN_PATTERN)
_DIGEST = re.compile("[0-9a-f]{64}")


class PacketKind(StrEnum):
    """Which way a packet goes; the file's name starts with it."""

    UPDATES = "updates"
    """from the hub to a replica: what would have gone to the agreement's topic"""
    CHANGES = "changes"
    """from a replica to the hub: what would have gone to the replica's topic"""


@dataclass(frozen=True, slots=True)
class Content:
    """How many records follow, how large they are, and their digest.

    `bytes`: the records with a line feed behind each, uncompressed; `compressed`: as they stand in
    the file. `sha256`: of the records uncompressed, as `tail -n +2 FILE | zstd -dc | sha256sum`
    computes it.
    """

    records: int = 0
    bytes: int = 0
    compressed: int = 0
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Got:
    """Up to where the hub has a replica's records: the first `place` records of this outbox.

    `csn`, `opno`, `epoch`: the largest that the replica is known to have reached; "" and 0: none.
    """

    outbox: str
    place: int
    csn: str = ""
    opno: int = 0
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class UpdatesHeader:
    """A packet of the hub for one replica; all parts of a packet agree in all but `part`.

    `hub`, `rid`: the rids of hub and replica. `session`: the one that is answered; None before a
    hello. `number`: counts the packets of the agreement, from 1 on. `row_before`, `row_after`: per
    origin the number up to which the hub takes the replica to have it, without this packet and
    with it. `first_prev`, `last_hub_epoch`: `prev` of the first batch and hub epoch of the last;
    None: no batch is in it. `got`: None before the first record of the replica.
    """

    replicageneration: str
    hub: int
    agreement: str
    rid: int
    generation: int
    session: str | None
    number: int
    row_before: Mapping[str, int]
    row_after: Mapping[str, int]
    first_prev: int | None
    last_hub_epoch: int | None
    got: Got | None
    part: int = 1
    parts: int = 1
    content: Content = Content()

    @property
    def kind(self) -> PacketKind:
        """Which way it goes."""
        return PacketKind.UPDATES

    @property
    def name(self) -> str:
        """The name of its file; packets of one agreement sort by it as they were exported."""
        return (
            f"updates-{self.agreement}-g{self.generation:06}-{self.number:010}"
            f"-{self.part:04}of{self.parts:04}.packet"
        )


@dataclass(frozen=True, slots=True)
class ChangesHeader:
    """A packet of a replica: the records at the places base + 1 to `end` of its outbox.

    `replicageneration`: None as long as the replica does not know it. `outbox`: the outbox's id.
    `hash`: SHA-256 of the record at `base`; None at base 0. `opno`: the largest of the replica's
    own changes up to `end`; `covers`: the hub epoch up to which it had everything then.
    """

    replicageneration: str | None
    replica: str
    rid: int
    outbox: str
    base: int
    end: int
    hash: str | None
    opno: int
    covers: int
    content: Content = Content()

    @property
    def kind(self) -> PacketKind:
        """Which way it goes."""
        return PacketKind.CHANGES

    @property
    def name(self) -> str:
        """The name of its file; packets of one outbox sort by it as their records follow."""
        return f"changes-{self.replica}-{self.outbox[:8]}-{self.base + 1:012}-{self.end:012}.packet"


Header = UpdatesHeader | ChangesHeader


# -- the document -----------------------------------------------------------------------------


def header_text(header: Header) -> str:
    """The header as the first line of a file, without its line feed; it seals itself.

    Its last member `header_sha256` is the digest of the line without that member.
    """
    own = {one.name: getattr(header, one.name) for one in fields(header) if one.name != "content"}
    for name in ("row_before", "row_after"):
        if name in own:
            own[name] = dict(sorted(own[name].items()))
    if own.get("got") is not None:
        own["got"] = _members_of(own["got"])
    members = {"v": VERSION, "kind": header.kind, **own, **_members_of(header.content)}
    seal = hashlib.sha256(json_text(members).encode()).hexdigest()
    return json_text({**members, "header_sha256": seal})


def _members_of(value: Got | Content) -> dict[str, object]:
    return {one.name: getattr(value, one.name) for one in fields(value)}


def parse_header(line: bytes) -> Header:
    """The header of a first line; WireError names the member that is wrong.

    NewerVersionError: this program is too old for it.
    """
    members = _Members(_loads(line), "")
    version = members.number("v")
    if version > VERSION:
        raise NewerVersionError(
            f"member v: {version} is newer than {VERSION}: upgrade this side first"
        )
    kind = members.text("kind")
    if kind not in list(PacketKind):
        raise WireError(f"member kind: {kind!r} is neither updates nor changes")
    header = _updates(members) if kind == PacketKind.UPDATES else _changes(members)
    members.digest("header_sha256")
    members.end()
    if header_text(header).encode() != line:
        raise WireError("member header_sha256: the header is not as it was written")
    return header


def _loads(line: bytes) -> dict[str, object]:
    try:
        found = foreign_json.loads(line)
    except ValueError as error:
        raise WireError(f"not JSON in UTF-8: {error}") from error
    if not isinstance(found, dict):
        raise WireError("not a JSON object")
    return found


class NewerVersionError(WireError):
    """A header of a version that this side does not know."""


def _updates(members: "_Members") -> UpdatesHeader:
    found = UpdatesHeader(
        members.text("replicageneration"),
        members.number("hub"),
        members.text("agreement"),
        members.number("rid"),
        members.number("generation"),
        members.text_or_none("session"),
        members.number("number"),
        members.row("row_before"),
        members.row("row_after"),
        members.number_or_none("first_prev"),
        members.number_or_none("last_hub_epoch"),
        members.got("got"),
        members.number("part"),
        members.number("parts"),
        _content(members),
    )
    if not 1 <= found.part <= found.parts:
        raise WireError(f"member part: {found.part} is none of {found.parts} parts")
    return found


def _changes(members: "_Members") -> ChangesHeader:
    found = ChangesHeader(
        members.text_or_none("replicageneration"),
        members.text("replica"),
        members.number("rid"),
        members.text("outbox"),
        members.number("base"),
        members.number("end"),
        members.digest_or_none("hash"),
        members.number("opno"),
        members.number("covers"),
        _content(members),
    )
    if found.end - found.base != found.content.records:
        raise WireError(
            f"member records: {found.content.records}, but its places are {found.base + 1} to"
            f" {found.end}"
        )
    if (found.hash is None) != (found.base == 0):
        raise WireError("member hash: it stands for the record at base, which 0 has not")
    return found


def _content(members: "_Members") -> Content:
    return Content(
        members.number("records"),
        members.number("bytes"),
        members.number("compressed"),
        members.digest("sha256"),
    )


class _Members:
    """The members of one object, each taken once, with the form that it must have."""

    __slots__ = ("left", "within")

    def __init__(self, members: Mapping[str, object], within: str) -> None:
        self.left, self.within = dict(members), within

    def take(self, name: str) -> object:
        if name not in self.left:
            raise WireError(f"member {self.within}{name} is missing")
        return self.left.pop(name)

    def end(self) -> None:
        """Raise for what nobody took."""
        if self.left:
            raise WireError(f"member {self.within}{min(self.left)} is unknown: upgrade this side")

    def text(self, name: str) -> str:
        found = self.take(name)
        if not isinstance(found, str):
            raise self._wrong(name, found, "a string")
        return found

    def text_or_none(self, name: str) -> str | None:
        return self.text(name) if self._is_set(name) else None

    def number(self, name: str) -> int:
        found = self.take(name)
        if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found < 2**63:
            raise self._wrong(name, found, "an integer from 0 on")
        return found

    def number_or_none(self, name: str) -> int | None:
        return self.number(name) if self._is_set(name) else None

    def digest(self, name: str) -> str:
        found = self.text(name)
        if not _DIGEST.fullmatch(found):
            raise self._wrong(name, found, "64 lower-case hex digits")
        return found

    def digest_or_none(self, name: str) -> str | None:
        return self.digest(name) if self._is_set(name) else None

    def csn(self, name: str) -> str:
        found = self.text(name)
        if found and not _CSN.fullmatch(found):
            raise self._wrong(name, found, "a CSN, 20 lower-case hex digits, or empty")
        return found

    def row(self, name: str) -> dict[str, int]:
        members = self._object(name)
        return {origin: members.number(origin) for origin in sorted(members.left)}

    def got(self, name: str) -> Got | None:
        if not self._is_set(name):
            return None
        members = self._object(name)
        found = Got(
            members.text("outbox"),
            members.number("place"),
            members.csn("csn"),
            members.number("opno"),
            members.number("epoch"),
        )
        members.end()
        return found

    def _object(self, name: str) -> Self:
        found = self.take(name)
        if not isinstance(found, dict):
            raise self._wrong(name, found, "an object")
        return type(self)(found, f"{self.within}{name}.")

    def _is_set(self, name: str) -> bool:
        """Return whether the member has a value; null is taken."""
        if name in self.left and self.left[name] is None:
            del self.left[name]
            return False
        return True

    def _wrong(self, name: str, found: object, form: str) -> WireError:
        return WireError(f"member {self.within}{name}: {found!r} must be {form}")
