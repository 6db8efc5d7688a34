"""What was decided about numbers, as text in the capture row, and when there is to decide."""

import orjson

from connectors.agent.own_topic import OwnTopic
from connectors.postgres.log.fold import AS_LOGGED, Cut, Limit, Numbering
from connectors.postgres.log.journal import LogJournal
from connectors.postgres.log.lsn import lsn_text, parse_lsn
from streaming.core.model.change import Change
from streaming.core.model.csn import Generator
from streaming.core.model.values import json_text


def numbering_text(numbering: Numbering) -> str:
    """The text that is stored; empty: all is as the log has it."""
    if numbering == AS_LOGGED:
        return ""
    cut, limit = numbering.cut, numbering.limit
    members: dict[str, object] = {}
    if cut is not None:
        at = [cut.generator.time_s, cut.generator.sequence, cut.opno]
        members["cut"] = [str(cut.id), *at, cut.is_ended]
    if limit is not None:
        members["limit"] = [limit.time_s, lsn_text(limit.until_lsn)]
    return json_text(members)


def parse_numbering(text: str, rid: int) -> Numbering:
    """What was stored, for the replica of this rid."""
    if not text:
        return AS_LOGGED
    members = orjson.loads(text)
    cut, limit = None, None
    if "cut" in members:
        id_, time_s, sequence, opno, is_ended = members["cut"]
        cut = Cut(int(id_), Generator(rid, time_s, sequence), opno, is_ended)
    if "limit" in members:
        limit = Limit(members["limit"][0], parse_lsn(members["limit"][1]))
    return Numbering(cut, limit)


def is_overtaken(journal: LogJournal, past: OwnTopic) -> bool:
    """Return whether the next change would not be above everything in the topic."""
    state = journal.checkpoint.state
    if state.opno < past.opno:
        return True
    if further(state.generator, past.csn) == state.generator:
        return False
    waiting = (one.record for one in journal.entries)
    first = next((one.csn for one in waiting if isinstance(one, Change)), "")
    return first <= past.csn


def further(generator: Generator, csn: str) -> Generator:
    """The generator behind this CSN, if that is further; empty: there is none."""
    return later(generator, Generator.behind(generator.rid, csn))


def later(one: Generator, other: Generator) -> Generator:
    """That of two generators of a replica which is further."""
    return max(one, other, key=lambda each: (each.time_s, each.sequence))
