"""A RUV says what is known: per replica the smallest and the largest CSN."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from streaming.core.csn import rid_of
from streaming.core.errors import RuvError

_GENERATION = "{replicageneration}"
_ELEMENT = re.compile(r"^\{replica\s+(\d+)(?:\s+([^}\s]*))?\s*\}(.*)$", re.IGNORECASE)
_CSN = re.compile(r"^[0-9a-fA-F]{20}$")
_TIME = re.compile(r"^[0-9a-fA-F]{8}$")


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

    def covers(self, csn: str) -> bool:
        """Claim that this change is known here."""
        known = self.max_of(rid_of(csn))
        return known is not None and csn <= known

    def covers_all(self, other: "Ruv") -> bool:
        """Claim that everything the other knows is known here."""
        return all(e.max_csn is None or self.covers(e.max_csn) for e in other.elements.values())

    def with_csn(self, csn: str) -> "Ruv":
        """The RUV after this change: max moves only up, min is set once."""
        rid = rid_of(csn)
        old = self.elements.get(rid, Element())
        if old.max_csn is not None and csn <= old.max_csn:
            return self
        new = replace(old, min_csn=old.min_csn or csn, max_csn=csn)
        return replace(self, elements={**self.elements, rid: new})

    def with_max(self, rid: int, csn: str | None) -> "Ruv":
        """The RUV with this replica's max set, up or down; None forgets its changes."""
        old = self.elements.get(rid, Element())
        new = Element(url=old.url) if csn is None else replace(old, max_csn=csn, min_csn=old.min_csn or csn)
        return replace(self, elements={**self.elements, rid: new})

    def max_csns(self) -> dict[int, str]:
        """rid -> largest known CSN, for the replicas of which a change was seen."""
        return {rid: e.max_csn for rid, e in self.elements.items() if e.max_csn is not None}

    def same_position(self, other: "Ruv") -> bool:
        """Claim that both know the same changes, whatever their minima and URLs."""
        return self.max_csns() == other.max_csns()

    def text(self) -> list[str]:
        """The 389 text form: the generation first, then an element per rid in rid order."""
        head = [f"{_GENERATION} {self.generation}"] if self.generation else []
        return head + [_element_text(rid, self.elements[rid]) for rid in sorted(self.elements)]


def parse_ruv(lines: Iterable[str]) -> Ruv:
    """Read the text form as real servers write it; RuvError names the line that is not one.

    An element may have 0, 1, 2 or 3 fields behind the brace (389 exports a purge RUV with one
    CSN, a max RUV with a time as third) and may lack its URL. One CSN alone is the max.
    """
    generation, elements = "", dict[int, Element]()
    for line in lines:
        if line.startswith(_GENERATION):
            generation = generation or line.removeprefix(_GENERATION).strip()
            continue
        rid, element = _parse_element(line)
        elements[rid] = element
    return Ruv(generation, elements)


def _parse_element(line: str) -> tuple[int, Element]:
    match = _ELEMENT.match(line.strip())
    if match is None:
        raise RuvError(f"{line!r} is not an element of a RUV: expected {{replica <rid> <url>}} <min> <max>")
    rid, url, fields = int(match[1]), match[2] or "", match[3].split()
    if len(fields) > 1 and _TIME.match(fields[-1]):
        fields = fields[:-1]
    if len(fields) > 2 or not all(_CSN.match(text) for text in fields):
        raise RuvError(f"{line!r} is not an element of a RUV: behind the brace stand at most two CSNs and a time")
    csns = [text.lower() for text in fields]
    return rid, Element(csns[0] if len(csns) == 2 else (csns[0] if csns else None), csns[-1] if csns else None, url)


def _element_text(rid: int, element: Element) -> str:
    brace = f"{{replica {rid} {element.url}}}" if element.url else f"{{replica {rid}}}"
    return f"{brace} {element.min_csn} {element.max_csn}" if element.max_csn else brace
