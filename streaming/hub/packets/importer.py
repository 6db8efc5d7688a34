"""Takes the packets of replicas into their topics: nobody else writes these.

A thread looks into the folders every second. A packet is verified whole before its first record is
produced, and its file is removed once Kafka has all of them. A hub that dies between finds in the
topic which are there.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from connectors.kafka.placed_records import digest_of
from connectors.kafka.sink import UpdatesSink
from connectors.packets.format import (
    PacketError,
    PacketFault,
    packet_files,
    read_changes,
    read_header,
)
from connectors.packets.header import ChangesHeader, PacketKind
from connectors.wire import decode
from streaming.core.matrix.importing import (
    AlreadyThere,
    BroughtRecords,
    RefusePacket,
    TakeRecords,
    TopicRecords,
    WaitForOthers,
    decide_import,
)
from streaming.core.matrix.packets import Place
from streaming.core.model.errors import PublishError, SourceError, WireError
from streaming.core.records.record import Hello
from streaming.core.state.hub_state import HubState
from streaming.core.text.wording import as_numbered
from streaming.hub.packets.topic import FedReplica, FedTopic

LOG = logging.getLogger("slackwater")

EVERY_S = 1.0
JOIN_S = 5.0
COPIED_S = 60.0
"""For how long a file may be shorter than it says: it is still being copied."""

Stamp = tuple[int, int, int]
"""By what a file is known to be the same: inode, size in bytes, time of its last change in ns."""


@dataclass(frozen=True, slots=True)
class WaitingPacket:
    """A packet that is not taken: as it was, since when (monotonic seconds), and why.

    `is_problem`: it never will be as it is. `is_early`: what comes before it is missing.
    """

    stamp: Stamp
    since_s: float
    why: str
    is_problem: bool
    is_early: bool = False


@dataclass(slots=True)
class PacketImporter:
    """The thread; `state()`: what the hub has committed, `offsets()`: up to where it has read.

    `record_bytes`: the largest record that the topics take. `waiting`: the files that are not
    taken. `imported`: how many were.
    """

    topics: Mapping[str, FedTopic]
    connect: Callable[[], UpdatesSink]
    state: Callable[[], HubState]
    offsets: Callable[[], Mapping[str, int]]
    record_bytes: int
    waiting: dict[Path, WaitingPacket] = field(default_factory=dict)
    imported: int = 0
    _faults: dict[str, str] = field(default_factory=dict)
    _found_now: dict[str, str] = field(default_factory=dict)
    _sink: UpdatesSink | None = None
    _stopped: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self, *, once: bool = False) -> None:
        """Take what is there, then again every second beside the batches; `once`: and no more."""
        if self.topics and once:
            self.take_all()
        elif self.topics:
            self._thread = threading.Thread(target=self._run, name="packets", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop behind the packet that is being taken."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(JOIN_S)
        if self._thread is None or not self._thread.is_alive():
            self._give_up_sink()

    def place_at(self, topic: str, offset: int) -> Place | None:
        """The place of the last record before an offset of a topic; None: none is known there."""
        return next((t.places.at(offset) for t in self._fed if t.replica.topic == topic), None)

    @property
    def problems(self) -> dict[str, str]:
        """What keeps packets from being taken, by a person's help -> what to do."""
        faults = self._faults
        folders = {f"packets in {one} are not taken": why for one, why in faults.items()}
        files = {
            f"packet {path} is not taken": one.why
            for path, one in list(self.waiting.items())
            if one.is_problem or one.is_early
        }
        return folders | files

    @property
    def _fed(self) -> Sequence[FedTopic]:
        return [*self.topics.values()]

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self.take_all()
            except Exception as error:
                LOG.exception("packets are not taken")
                self._faults = {"any folder": f"{error!r}: the hub's log has more; it tries again"}
            self._stopped.wait(EVERY_S)

    def take_all(self) -> None:
        """Look into every folder once, and take what may be taken."""
        self._found_now = {}
        for fed in self._fed:
            if fed.places.read_to is None:
                self._found(fed)
        there = set[Path]()
        for folder in {one.replica.folder for one in self._fed}:
            there |= self._take_from(folder)
        self.waiting = {path: one for path, one in self.waiting.items() if path in there}
        for place, why in self._found_now.items():
            if self._faults.get(place) != why:
                LOG.warning("packets in %s are not taken: %s; the hub tries again", place, why)
        self._faults = self._found_now

    def _found(self, fed: FedTopic) -> None:
        """Find what the topic holds, from where the hub goes on in it."""
        try:
            fed.follow(self.offsets().get(fed.replica.topic, 0))
        except SourceError as error:
            self._note_fault(fed.replica.folder, str(error))

    def _take_from(self, folder: Path) -> set[Path]:
        """Take what the folder holds, again as long as something became due; what it held."""
        try:
            files = packet_files(folder, PacketKind.CHANGES)
        except OSError as error:
            self._note_fault(folder, _unreadable(error))
            return set()
        left = list(files)
        while left and not self._stopped.is_set():
            taken = [path for path in left if self._is_taken(path, folder)]
            if not taken:
                break
            left = [path for path in left if path not in taken]
        return set(files)

    def _is_taken(self, path: Path, folder: Path) -> bool:
        """Take one packet if it is due; whether its file is done with, and others may be due."""
        try:
            stamp = _stamp(path)
            known = self.waiting.get(path)
            if known is not None and known.stamp == stamp and known.is_problem:
                return False
            header = _header(path)
            fed = self.topics.get(header.replica)
            if fed is None or fed.replica.folder != folder:
                return self._waits(path, stamp, _astray(header), is_problem=True)
            if (refused := _refused(header, fed.replica, self.state())) is not None:
                return self._waits(path, stamp, refused, is_problem=True)
            return fed.places.read_to is not None and self._decided(path, stamp, header, fed)
        except FileNotFoundError:
            return False
        except PacketError as error:
            return self._unusable(path, error)
        except OSError as error:
            self._note_fault(folder, _unreadable(error))
            return False
        except (PublishError, SourceError) as error:
            self._give_up_sink()
            self._note_fault(folder, str(error))
            return False

    def _decided(self, path: Path, stamp: Stamp, header: ChangesHeader, fed: FedTopic) -> bool:
        """Take a packet if it is due; one that is not is not read further than its header."""
        records = list[bytes]()
        topic = self._topic_records(fed)
        if topic.is_next(header.outbox, header.base):
            fed.follow(0)
            topic = self._topic_records(fed)
            packet = read_changes(path, self.record_bytes)
            header, records = packet.header, [*packet.records()]
        match decide_import(_brought(header, records), topic):
            case TakeRecords(known):
                after = header.base + known
                fed.produce(self._connected(), header.outbox, after, records[known:])
                self.imported += 1
            case AlreadyThere():
                pass
            case WaitForOthers(first, last):
                why = _missing(header, first, last)
                return self._waits(path, stamp, why, is_problem=False, is_early=True)
            case RefusePacket(why):
                return self._waits(path, stamp, why, is_problem=True)
        path.unlink(missing_ok=True)
        LOG.debug("%s: the records at places up to %d are taken", path.name, header.end)
        return True

    def _topic_records(self, fed: FedTopic) -> TopicRecords:
        """What the topic holds; where its last record is gone, by what the replica was told."""
        state = self.state()
        agreement = state.agreements.get(fed.replica.agreement)
        got = agreement.feed.got if agreement is not None and agreement.feed is not None else None
        last = fed.places.last.place if fed.places.last is not None else got
        replica = state.replicas.get(fed.replica.rid)
        return TopicRecords(
            last,
            fed.places.outboxes | ({got.outbox} if got else set()),
            lambda place: fed.digest_at(place, last.outbox) if last else None,
            replica.known_sessions if replica else (),
        )

    # -- what is not taken ------------------------------------------------------------------

    def _waits(
        self, path: Path, stamp: Stamp, why: str, *, is_problem: bool, is_early: bool = False
    ) -> bool:
        """Leave a packet where it is; a problem is named in the log once."""
        known = self.waiting.get(path)
        if known is None or (known.why, known.is_problem) != (why, is_problem):
            since_s = time.monotonic() if known is None or known.stamp != stamp else known.since_s
            self.waiting[path] = WaitingPacket(stamp, since_s, why, is_problem, is_early)
            log = LOG.warning if is_problem else LOG.info
            log("packet %s is not taken: %s", path, why)
        return False

    def _unusable(self, path: Path, error: PacketError) -> bool:
        """Leave a file that is no whole packet; one that is still being copied is no problem."""
        try:
            stamp = _stamp(path)
        except FileNotFoundError:
            return False
        known = self.waiting.get(path)
        since_s = known.since_s if known and known.stamp == stamp else time.monotonic()
        is_short = error.fault is PacketFault.NOT_WHOLE
        is_copied = is_short and time.monotonic() - since_s < COPIED_S
        return self._waits(path, stamp, str(error), is_problem=not is_copied)

    def _note_fault(self, folder: Path, why: str) -> None:
        """Note what keeps a folder's packets from being taken in this round."""
        self._found_now[str(folder)] = why

    # -- the connection ---------------------------------------------------------------------

    def _connected(self) -> UpdatesSink:
        if self._sink is None:
            self._sink = self.connect()
        return self._sink

    def _give_up_sink(self) -> None:
        """Connect anew next time: what the old connection sent may be in the topics."""
        if self._sink is not None:
            sink, self._sink = self._sink, None
            sink.close()


def _header(path: Path) -> ChangesHeader:
    """The header of a replica's packet; PacketError if it is none."""
    header = read_header(path)
    if not isinstance(header, ChangesHeader):
        raise PacketError(path, PacketFault.OTHER_WAY, "it is the hub's: move it away")
    return header


def _astray(header: ChangesHeader) -> str:
    return (
        f"it is of replica {header.replica}, and no agreement says that its packets are here: move"
        " it to their folder, or configure one"
    )


def _refused(header: ChangesHeader, replica: FedReplica, state: HubState) -> str | None:
    """Why nothing of this packet's database is taken; None: it may be."""
    if header.rid != replica.rid:
        return (
            f"it is of replica {replica.name} with rid {header.rid}, the configuration says"
            f" {replica.rid}: correct the one that is wrong"
        )
    if header.replicageneration not in (None, "", state.replicageneration):
        return (
            f"its database belongs to another hub, of replicageneration {header.replicageneration},"
            f" this one is of {state.replicageneration}: remove it"
        )
    known = state.replicas.get(replica.rid)
    if known is not None and known.is_retired_for_good:
        return (
            f"replica {replica.name} is retired, and what it wrote is not taken any more: remove"
            " it; to take part again its database starts empty, under another name"
        )
    return None


def _unreadable(error: OSError) -> str:
    return (
        f"{error.strerror or error}: mount the folder, and give the hub's user the right to read"
        " its files and to remove them"
    )


def _stamp(path: Path) -> Stamp:
    found = path.lstat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _missing(header: ChangesHeader, first: int, last: int) -> str:
    return (
        f"it waits for {as_numbered('place', first, last)} of outbox {header.outbox[:8]}, which the"
        f" agent of {header.replica}, started with --again, exports again if need be"
    )


def _brought(header: ChangesHeader, records: Sequence[bytes]) -> BroughtRecords:
    def digest_at(place: int) -> str | None:
        if place == header.base:
            return header.hash
        return digest_of(records[place - header.base - 1])

    return BroughtRecords(header.outbox, header.base, header.end, digest_at, _session(records))


def _session(records: Sequence[bytes]) -> str | None:
    """The session of the first record, if that is a hello."""
    try:
        session, record = decode(records[0])
    except (IndexError, WireError):
        return None
    return session if isinstance(record, Hello) else None
