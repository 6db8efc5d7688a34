"""Replication sessions of a directory server: which anchor it chose and what it sent.

The consumer's own rid counts like any other here, as it did there.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from streaming.core.delivery.lack import Lack, SendingRefused, lack, refused
from streaming.core.model.csn import rid_of
from streaming.core.model.ruv import Element, Ruv, parse_ruv
from tests.reference.lack import must_send
from tests.vectors.outcome import About, Case, Difference, Explains, VectorError

START_ITERATION = "00000000-00000000-00000000-00000000"
"""nsuniqueid of the record that marks where a log begins: an anchor, never sent."""


@dataclass(frozen=True, slots=True)
class Session:
    """Both RUVs, the purge RUV, and the supplier's log in CSN order; `marks` are never sent."""

    supplier: Ruv
    consumer: Ruv
    purged: Ruv
    log: tuple[str, ...]
    marks: frozenset[str]


@dataclass(frozen=True, slots=True)
class Played:
    """What the hub would do in this session."""

    session: Session
    lacking: Lack
    refusal: SendingRefused | None
    sent: tuple[str, ...]

    @property
    def anchor(self) -> str | None:
        """Where it starts, or None: refused, or nothing to send."""
        anchor = self.lacking.anchor
        return anchor.csn if anchor and not self.refusal else None


def is_session(case: Case) -> bool:
    """Return whether the case is a replication session."""
    return case.keys() >= {"supplier_ruv", "consumer_ruv", "changelog"}


def play(case: Case) -> Played:
    """Ask core what the consumer lacks and read the log for it."""
    session = read(case)
    lacking = lack(session.supplier, session.consumer)
    refusal = refused(lacking, session.purged, session.log.__contains__)
    sent = () if refusal else tuple(logged(session, lacking))
    return Played(session, lacking, refusal, sent)


def logged(session: Session, lacking: Lack) -> list[str]:
    """What the log has of what is lacking, from the anchor on."""
    anchor = lacking.anchor
    if anchor is None:
        return []
    behind = [c for c in session.log if c > anchor.csn or (c == anchor.csn and anchor.at)]
    return [c for c in behind if must_send(lacking, c) and c not in session.marks]


def read(case: Case) -> Session:
    """The session of a case, however its RUVs and log records are written."""
    records = [r if isinstance(r, dict) else {"csn": r} for r in case["changelog"]]
    marks = (r["csn"].lower() for r in records if r.get("nsuniqueid") == START_ITERATION)
    return Session(
        _ruv(case["supplier_ruv"]),
        _ruv(case["consumer_ruv"]),
        _ruv(case.get("supplier_purge_ruv")),
        tuple(sorted({r["csn"].lower() for r in records})),
        frozenset(marks),
    )


def _ruv(written: Any) -> Ruv:  # noqa: ANN401
    """A RUV that is written as lines of text, or as rid -> min and max."""
    match written:
        case None:
            return Ruv()
        case list():
            return parse_ruv(written)
        case dict():
            return Ruv(elements={int(rid): _element(span) for rid, span in written.items()})
        case _:
            raise VectorError(f"{written!r} is not a RUV: expected lines, or rid -> min and max")


def _element(span: Mapping[str, str | None] | None) -> Element:
    low, high = (span or {}).get("min"), (span or {}).get("max")
    return Element(low and low.lower(), high and high.lower())


def differences(case: Case, played: Played) -> list[Difference]:
    """What was expected otherwise; an expected anchor that the log lacks is a refusal too."""
    expect, found = case["expect"], list[Difference]()
    server_anchor, server_sent = directory_server(played.session, played.lacking)
    anchor = expect.get("anchor")
    if anchor is not None and anchor not in played.session.log and not expect.get("sent"):
        anchor = None
    if "anchor" in expect and anchor != played.anchor:
        text = f"anchor: expected {anchor}, got {_told(played)}"
        found.append(Difference(text, About.ANCHOR, is_origins=anchor == server_anchor))
    sent = expect.get("sent")
    if sent is not None and tuple(sent) != played.sent:
        text = f"sent: {_first_difference(sent, played.sent)}"
        found.append(Difference(text, About.SENT, is_origins=tuple(sent) == server_sent))
    return found


def directory_server(session: Session, lacking: Lack) -> tuple[str | None, tuple[str, ...]]:
    """The anchor that a directory server chooses and the CSNs that it sends (389: cl5_clcache.c).

    Only the anchor must be in its log, whatever was purged. A stop moves with a record that
    directly follows it; once one does not, no later one of its replica is sent.
    """
    anchor = lacking.anchor
    if anchor is None or anchor.csn not in session.log:
        return None, ()
    stops, has = lacking.stop.max_csns(), lacking.has
    sent = list[str]()
    for csn in session.log:
        stop = stops.get(rid_of(csn))
        if csn < anchor.csn or (csn == anchor.csn and not anchor.at) or stop is None:
            continue
        if has.covers(csn):
            continue
        if _follows(csn, stop):
            stops[rid_of(csn)] = csn
        elif csn > stop:
            del stops[rid_of(csn)]
            continue
        sent.append(csn)
    return anchor.csn, tuple(csn for csn in sent if csn not in session.marks)


def _told(played: Played) -> str:
    if played.refusal:
        return f"a refusal: {played.refusal}"
    return played.anchor or "nothing to send"


def _first_difference(expected: list[str], got: tuple[str, ...]) -> str:
    place = next(
        (n for n, (one, two) in enumerate(zip(expected, got, strict=False)) if one != two),
        min(len(expected), len(got)),
    )
    one, two = ([*csns, "the end"][min(place, len(csns))] for csns in (expected, got))
    return (
        f"expected {len(expected)} CSNs, got {len(got)};"
        f" the first difference is number {place + 1}: expected {one}, got {two}"
    )


# -- where the hub means something else ----------------------------------------------------


def start_at_purge_edge(_: Case, played: Played) -> Explains | None:
    """The consumer's last is not in the log because purging went exactly up to it."""
    anchor, session = played.lacking.anchor, played.session
    if anchor is None or anchor.at or anchor.csn in session.log:
        return None
    edges = session.purged.max_csns().values()
    return _about(About.ANCHOR, About.SENT) if anchor.csn in edges else None


def hole_behind_another_start(_: Case, played: Played) -> Explains | None:
    """The anchor is in the log, but another replica's changes are purged behind its start."""
    refusal = played.refusal
    if refusal is None or refusal.start == played.lacking.anchor:
        return None
    return _about(About.ANCHOR, About.SENT)


def neighbour_beyond_stop(_: Case, played: Played) -> Explains | None:
    """The log already holds the successor of a stop: same second, next sequence number."""
    stops = played.lacking.stop.max_csns().values()
    beyond = {c for c in played.session.log for stop in stops if _follows(c, stop)}
    return _about(About.SENT) if beyond else None


def _follows(csn: str, stop: str) -> bool:
    same = csn[:8] == stop[:8] and csn[12:16] == stop[12:16]
    return same and int(csn[8:12], 16) == int(stop[8:12], 16) + 1


def _about(*abouts: About) -> Explains:
    return lambda difference: difference.about in abouts


def gapless(_: Case, played: Played) -> str | None:
    """All that is lacking up to the stop and nothing else was sent; or nothing, for a hole."""
    if played.refusal:
        edge = played.session.purged.max_of(played.refusal.rid)
        proven = edge is not None and edge != played.refusal.start.csn
        return None if proven and not played.sent else "a refusal without a purged change"
    has, stop = played.session.consumer, played.lacking.stop
    lacking = [c for c in played.session.log if stop.covers(c) and not has.covers(c)]
    whole = tuple(c for c in lacking if c not in played.session.marks)
    return None if whole == played.sent else "not exactly what the consumer lacks was sent"
