"""The agent of a replica that Kafka does not reach: its topics are packets in a folder.

It publishes into its outbox, of which packets are cut, and applies the packets of the hub that it
finds. Its session lasts over restarts: with packets that are slower than restarts, a hello at every
start would make each answer worthless before it comes.
"""

import logging
import math
import threading
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from connectors import wire
from connectors.agent.clock import ClockWatch
from connectors.agent.contract import ReplicaStore, StoreBusyError
from connectors.agent.loop import Agent
from connectors.agent.metrics import served_metrics
from connectors.agent.own_topic import OwnTopic, compare
from connectors.agent.settings import AgentSettings, PacketSettings
from connectors.live_value import LiveAccess
from connectors.packets.bay import Bay
from connectors.packets.export import Sender, export
from connectors.packets.header import Got
from connectors.packets.outbox import Outbox, Scrubbed
from streaming.core.delivery.consumer import Position
from streaming.core.model.change import Change
from streaming.core.model.errors import ConfigError, StateError
from streaming.core.text.wording import as_count

LOOK_S = 1.0
"""How often an agent that waits for a packet looks for it."""

log = logging.getLogger(__name__)


def run_by_packets(
    settings: AgentSettings,
    packets: PacketSettings,
    readers: LiveAccess,
    store: ReplicaStore,
    stop: threading.Event,
) -> None:
    """Run one replica's agent on its open store until `stop` is set; HubError if it fails.

    What is left is exported at the end. `readers`: who may read its metrics now.
    """
    folder = packets.existing_folder()
    _stay(store, settings.agreement)
    has_published = store.position.session is not None
    file = packets.outbox_file(settings.replica)
    with closing(Outbox.open(file, settings.replica, has_published=has_published)) as outbox:
        bay = Bay(
            *(folder, settings.rid, lambda: store.position, stop.wait),
            told=lambda: agent.told,
            offset=store.updates_offset - 1,
        )
        watch = ClockWatch(settings.rid, settings.skew_s)
        agent = Agent(settings.rid, store, outbox, bay, watch=watch, heartbeat_s=math.inf)
        run = PacketFedAgent(agent, outbox, bay, Sender(folder, settings.replica, settings.rid))
        port, host = settings.metrics_port, settings.metrics_host
        with served_metrics(port, settings.replica, agent.counts, host, readers):
            if run.start(stop):
                log.info("%s", ready_text(settings, folder, packets.every_s))
                if packets.again:
                    run.forget_exports()
                while not stop.is_set():
                    run.run_once(packets.every_s)
                run.finish()
    log.info("ended")


def _stay(store: ReplicaStore, agreement: str | None) -> None:
    """Name the agreement in each hello; ConfigError if another one brought the position."""
    before = store.position.agreement
    if store.position.is_of_another(agreement):
        raise ConfigError(
            f"agreement {before} brought what this database has, and {agreement} sends packets to"
            f" it: give the agent the configuration of the hub that has {before}, or fill the"
            " database anew with `slackwater reinit`"
        )
    store.follow(agreement)


def ready_text(settings: AgentSettings, folder: Path, every_s: float) -> str:
    """What the agent does from its start on, for people."""
    tables = as_count(len(settings.tables), "table")
    return (
        f"ready: what is written to {tables} of {settings.database.place} goes into packets in"
        f" {folder} every {every_s:g} s; what others write comes from packets there"
    )


@dataclass(slots=True)
class PacketFedAgent:
    """An agent between its outbox and its bay.

    `noted`: what the hub has of the outbox, as it was taken note of last.
    """

    agent: Agent
    outbox: Outbox
    bay: Bay
    sender: Sender
    noted: Got | None = None
    exported_s: float = -math.inf

    # -- the start ------------------------------------------------------------------------------

    def start(self, stop: threading.Event) -> bool:
        """Go on in the session before, or start one; False: it was stopped while it had to wait.

        An outbox in place of a lost one, or one that was put back, does not tell what the replica
        has said, so nothing is published before a packet says what the hub has.
        """
        if self._is_put_back():
            log.warning("outbox %s was put back: a new one takes its place", self.outbox.path)
            self.outbox.renew()
        if not self.outbox.is_lost:
            self._go_on_or_greet()
            return True
        got = self._awaited(stop)
        if got is not None:
            self._start_anew(got)
        return got is not None

    def _is_put_back(self) -> bool:
        """Return whether the outbox lacks what the hub has of it, or the database published."""
        store = self.agent.store
        if self.outbox.is_lost or store.position.session is None:
            return False
        self.bay.packets()
        got = self.bay.got
        known = got.place if got is not None and got.outbox == self.outbox.id else 0
        if max(known, store.compared_up_to()[0]) > self.outbox.end:
            return True
        decoded = (wire.decode(value)[1] for value in self.outbox.newest_first())
        newest = next((one.csn for one in decoded if isinstance(one, Change)), "")
        return (store.published_own() or "") > max(newest, self.outbox.scrubbed.csn)

    def _go_on_or_greet(self) -> None:
        """Compare the database with its outbox, as any agent does with its topic."""
        store, scrubbed = self.agent.store, self.outbox.scrubbed
        offset, past = store.compared_up_to()
        known, is_behind = store.published_own(), offset < scrubbed.place
        offset = min(offset, self.outbox.end)  # of a database that was emptied it is a topic's
        past.csn, past.opno = max(past.csn, scrubbed.csn), max(past.opno, scrubbed.opno)
        past.epoch = max(past.epoch, scrubbed.epoch)
        end = compare(past, self.outbox.read(offset), offset, self.agent.rid, store.find)
        position, found = store.position, self.agent.reconcile(past)
        if is_behind:  # what it lacks begins somewhere in what is scrubbed
            log.warning("%s", RESTORED_TEXT)
            lost = past.missing > 0 or scrubbed.csn > (known or "")
            self.agent.greet(past, known, lost=lost)
        elif _is_as_published(position, past):
            self.agent.go_on(past)
        else:
            self.agent.greet(past, found, lost=past.missing > 0)
        store.mark_compared(end, past)

    def _awaited(self, stop: threading.Event) -> Got | None:
        """What the hub has by the newest packet, once there is one; None: the agent has to stop."""
        self.bay.packets()
        if self.bay.got is None:
            log.warning(
                "outbox %s is new, and the database has published to another one: nothing is"
                " published before a packet says what the hub has of that; order one at the hub"
                " (`slackwater export` %s) and bring it into %s; what is written to the database"
                " meanwhile is kept; a replica that took part by Kafka before starts anew"
                " (docs/packets.md, A lost outbox)",
                *(self.outbox.path, self.sender.replica, self.sender.folder),
            )
        while self.bay.got is None and not stop.wait(LOOK_S):
            self.bay.packets()
        return self.bay.got

    def _start_anew(self, got: Got) -> None:
        """Go on behind what the hub has, in a new session; the outbox is empty.

        StateError: the journal does not have all that the hub lacks any more.
        """
        store = self.agent.store
        own = store.published_own() or ""
        past = OwnTopic(own=min(own, got.csn) or None, csn=got.csn, opno=got.opno, epoch=got.epoch)
        is_restored = got.csn > own
        if is_restored:
            log.warning("%s", RESTORED_TEXT)
            store.reconcile(past)
        elif not store.publish_again(got.csn):
            raise StateError(
                "the outbox is lost, and the journal of the database does not have all any more"
                f" that follows {got.csn or 'nothing'}, the last change that the hub has: put the"
                " outbox back from a copy, or start the replica anew"
                " (docs/packets.md, A lost outbox)"
            )
        self.agent.own_csn, self.agent.handed = got.csn, 0
        store.mark_compared(0, OwnTopic())
        self.outbox.scrub(Scrubbed(0, got.csn, got.opno, got.epoch))
        self.agent.greet(past, past.own, lost=is_restored)

    # -- one iteration of the loop --------------------------------------------------------------

    def run_once(self, every_s: float) -> None:
        """Publish, receive and apply; then export, if it is time."""
        self.agent.run_once()
        self._take_note_of(self.bay.got)
        self._count()
        if time.monotonic() - self.exported_s >= every_s:
            self.export()

    def _count(self) -> None:
        """Count what only the outbox and packets under way hold."""
        got, counts = self.noted, self.agent.counts
        place = got.place if got is not None and got.outbox == self.outbox.id else 0
        counts.outbox_records = self.outbox.unknown_at_hub(place)
        counts.outbox_bytes = self.outbox.size_bytes()

    def finish(self) -> None:
        """Export what is left, unless somebody's transaction is in the way of publishing it."""
        with suppress(StoreBusyError):
            while self.agent.publish():
                pass
        self.export()

    def export(self) -> None:
        """Write packets of what the outbox holds and no packet does yet."""
        position = self.agent.store.position
        written = export(self.sender, self.outbox, position.ruv.generation or None, position.covers)
        for path in written:
            log.info("packet %s is written", path.name)
        self.exported_s = time.monotonic()

    def forget_exports(self) -> None:
        """Have exported again what the hub is not known to have by the newest packet of it."""
        self.bay.packets()
        self._take_note_of(self.bay.got)
        scrubbed = self.outbox.scrubbed
        self.outbox.mark_exported(scrubbed.place, scrubbed.opno)

    def _take_note_of(self, got: Got | None) -> None:
        """Scrub what the hub has; one that has more than the outbox holds shows it was put back."""
        if got is None or got == self.noted:
            return
        self.noted = got
        if got.outbox != self.outbox.id:
            return
        if got.place > self.outbox.end:
            log.warning(
                "outbox %s was put back: the hub has %d records of it, and it holds %d; a new one"
                " takes its place, and a session starts",
                *(self.outbox.path, got.place, self.outbox.end),
            )
            self.outbox.renew()
            self._start_anew(got)
        else:
            self._scrub(got.place)

    def _scrub(self, place: int) -> None:
        """Scrub up to this place, or to the last one before it at which no transaction is open."""
        store, before = self.agent.store, self.outbox.scrubbed
        past = OwnTopic(before.session, before.own, before.csn, before.epoch, before.opno)
        closed = before
        for at, value in self.outbox.read(before.place):
            if at >= place:
                break
            compare(past, [(at, value)], at, self.agent.rid, lambda _: 0)
            if not past.open:
                closed = Scrubbed(at + 1, past.csn, past.opno, past.epoch, past.session, past.own)
        if store.compared_up_to()[0] < closed.place:
            store.mark_compared(closed.place, OwnTopic(closed.session, closed.own))
        self.outbox.scrub(closed)


def _is_as_published(position: Position, past: OwnTopic) -> bool:
    """Return whether the database is in the session of its outbox, and has all that it tells."""
    is_in_session = position.session is not None and position.session == past.session
    has_applied = past.reached <= position.reached
    return is_in_session and has_applied and not past.missing and not past.stranded


RESTORED_TEXT = (
    "the database lacks what it published: it was restored from an older copy, or made anew; the"
    " hub sends it back; what is written here before it has caught up is in conflict (`floor`)"
)
