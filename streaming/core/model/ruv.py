"""A RUV (replica update vector): per replica the smallest and the largest known CSN."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from streaming.core.model.csn import rid_of
from streaming.core.model.errors import RuvError

_GENERATION = "{replicageneration}"
_ELEMENT = re.compile(r"\{replica +([0-9]+)(?: +([^}\s]+))? *\}(.*)", re.IGNORECASE)
_CSN = re.compile(r"[0-9a-fA-F]{20}")
_MODIFIED = re.compile(r"[0-9a-fA-F]{8}")
_LARGEST_RID = 65_535


class RuvComparison(StrEnum):
    """How one RUV's largest CSNs compare with another's."""

    EQUAL = "equal"
    """both are equal"""
    AHEAD = "ahead"
    """covers all that the other covers, and more"""
    BEHIND = "behind"
    """lacks something, and has nothing that the other lacks"""
    APART = "apart"
    """each covers something that the other lacks"""


@dataclass(frozen=True, slots=True)
class Element:
    """What is known of one replica; both CSNs are None while no change of it was seen."""

    min_csn: str | None = None
    max_csn: str | None = None
    url: str = ""


@dataclass(frozen=True, slots=True)
class Ruv:
    """Per rid the smallest CSN still in the changelog and the largest known.

    `generation` is the text behind `{replicageneration}`; it names the initial load.
    """

    generation: str = ""
    elements: Mapping[int, Element] = field(default_factory=dict)

    def max_of(self, rid: int) -> str | None:
        """The largest known CSN of this replica, or None."""
        element = self.elements.get(rid)
        return element.max_csn if element else None

    def min_of(self, rid: int) -> str | None:
        """The smallest CSN of this replica that the changelog still has, or None."""
        element = self.elements.get(rid)
        return element.min_csn if element else None

    def max_csns(self) -> dict[int, str]:
        """Rid -> largest known CSN, for the replicas of which a change was seen."""
        return {rid: e.max_csn for rid, e in self.elements.items() if e.max_csn is not None}

    def covers(self, csn: str) -> bool:
        """Return whether this RUV covers the change; never one of an unknown replica."""
        known = self.max_of(rid_of(csn))
        return known is not None and csn <= known

    def covers_all(self, other: "Ruv") -> bool:
        """Return whether this RUV covers all that the other covers, whatever their generations."""
        return all(self.covers(csn) for csn in other.max_csns().values())

    def compare(self, other: "Ruv") -> RuvComparison:
        """Compare this position with the other's."""
        match self.covers_all(other), other.covers_all(self):
            case True, True:
                return RuvComparison.EQUAL
            case True, False:
                return RuvComparison.AHEAD
            case False, True:
                return RuvComparison.BEHIND
            case _:
                return RuvComparison.APART

    def with_csn(self, csn: str) -> "Ruv":
        """The RUV after this change: max moves only up, min is set once."""
        rid = rid_of(csn)
        old = self.elements.get(rid, Element())
        if old.max_csn is not None and csn <= old.max_csn:
            return self
        return self._with(rid, replace(old, min_csn=old.min_csn or csn, max_csn=csn))

    def with_max(self, rid: int, csn: str | None) -> "Ruv":
        """The RUV with this replica's max set, up or down; None forgets its changes."""
        old = self.elements.get(rid, Element())
        if csn is None:
            return self._with(rid, Element(url=old.url))
        return self._with(rid, replace(old, min_csn=min(old.min_csn or csn, csn), max_csn=csn))

    def merge(self, other: "Ruv") -> "Ruv":
        """Return what either RUV covers.

        A join per rid (smallest min, largest max), so the order of merging does not matter.
        Generation and URLs are the first one's where it has any.
        """
        rids = sorted({*self.elements, *other.elements})
        none = Element()
        return Ruv(
            self.generation or other.generation,
            {r: _joined(self.elements.get(r, none), other.elements.get(r, none)) for r in rids},
        )

    def text(self) -> list[str]:
        """The 389 text form: the generation first, then an element per rid in rid order."""
        head = [f"{_GENERATION} {self.generation}"] if self.generation else []
        return head + [_element_text(rid, self.elements[rid]) for rid in sorted(self.elements)]

    def _with(self, rid: int, element: Element) -> "Ruv":
        return replace(self, elements={**self.elements, rid: element})


def _joined(one: Element, two: Element) -> Element:
    minima = [csn for csn in (one.min_csn, two.min_csn) if csn]
    maxima = [csn for csn in (one.max_csn, two.max_csn) if csn]
    return Element(min(minima, default=None), max(maxima, default=None), one.url or two.url)


NOTHING_KNOWN = Ruv()
"""The RUV of a replica that has seen no change of anybody."""


def largest_of(ruvs: Iterable[Ruv]) -> dict[int, str]:
    """Rid -> the largest CSN that one of these RUVs knows.

    A CSN names one change of its replica, whatever the data set.
    """
    found: dict[int, str] = {}
    for ruv in ruvs:
        for rid, csn in ruv.max_csns().items():
            found[rid] = max(csn, found.get(rid, ""))
    return found


def parse_ruv(lines: Iterable[str]) -> Ruv:
    """Read the text form as real servers write it; RuvError names the line that is not one.

    Behind an element's brace stand 0 to 3 fields: nothing (known, no change seen), one CSN (389
    exports a purge RUV so), two CSNs, and at the end perhaps the 8 hex digits of the time at
    which the element last moved. One CSN alone is the max. The URL may be missing. Of a second
    generation or a second element of one replica the first counts, as in 389's own look-ups.
    """
    generation, elements = "", dict[int, Element]()
    for line in map(str.strip, lines):
        if line.startswith(_GENERATION):
            generation = generation or line.removeprefix(_GENERATION).strip()
            continue
        rid, element = _parse_element(line)
        elements.setdefault(rid, element)
    return Ruv(generation, elements)


def _parse_element(line: str) -> tuple[int, Element]:
    match = _ELEMENT.fullmatch(line)
    if match is None:
        raise _not_an_element(line, "expected {replica <rid> <url>} <min> <max>")
    rid, url, fields = int(match[1]), match[2] or "", match[3].split()
    if rid > _LARGEST_RID:
        raise _not_an_element(line, f"a replica id is at most {_LARGEST_RID}")
    if len(fields) > 1 and _MODIFIED.fullmatch(fields[-1]):
        fields = fields[:-1]
    if len(fields) > 2 or not all(_CSN.fullmatch(text) for text in fields):
        raise _not_an_element(line, "behind the brace stand at most two CSNs and a time")
    csns = [text.lower() for text in fields]
    if any(rid_of(csn) != rid for csn in csns):
        raise _not_an_element(line, f"its CSNs are of another replica than {rid}")
    return rid, Element(csns[0], csns[-1], url) if csns else Element(url=url)


def _not_an_element(line: str, why: str) -> RuvError:
    return RuvError(f"{line!r} is not an element of a RUV: {why}")


def _element_text(rid: int, element: Element) -> str:
    brace = f"{{replica {rid} {element.url}}}" if element.url else f"{{replica {rid}}}"
    if element.max_csn is None:
        return brace
    return f"{brace} {element.min_csn or element.max_csn} {element.max_csn}"
