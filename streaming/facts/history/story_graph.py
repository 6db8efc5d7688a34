"""The story of a change as a graph in one HTML file: what came in, the verdict, what followed."""

import html
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from streaming.facts.page_style import COLOURS

BEFORE = ("against", "had seen", "had to see", "came too late")
"""The steps that are inputs of the verdict, beside the way of the change."""

GAP, LEFT, WIDTH, BETWEEN = 22, 20, 460, 60
"""The gap of boxes, their left edge and width, and the space between the columns, in pixels."""
HEAD, LINE, FOOT = 22, 17, 10
"""Of a box, in pixels: the line of its name, each line of its text, and what is below."""
COLUMNS = 60
"""How many characters a line of a box holds, in a font in which all are as wide."""

_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width">
<style>{colours}
h1 {{ font: 600 18px system-ui, sans-serif; overflow-wrap: anywhere; }}
svg {{ font: 12px ui-monospace, "DejaVu Sans Mono", monospace; max-width: none; }}
text {{ fill: var(--text); white-space: pre; }}
rect {{ fill: var(--box); stroke: var(--soft); }} line {{ stroke: var(--soft); }}
.verdict rect {{ fill: var(--verdict); stroke-width: 2; }}
.name {{ fill: var(--soft); font-family: system-ui, sans-serif; }}
</style>
<h1>{title}</h1>
<svg width="{width}" height="{height}" role="img" aria-label="{title}">{body}</svg>
</html>
"""


@dataclass(frozen=True, slots=True)
class StoryBox:
    """A step where it is drawn, its whole text in lines that fit."""

    name: str
    lines: tuple[str, ...]
    left: int
    top: int

    @property
    def height(self) -> int:
        """As high as its text needs."""
        return HEAD + LINE * len(self.lines) + FOOT

    @property
    def bottom(self) -> int:
        """Where it ends."""
        return self.top + self.height

    @property
    def middle(self) -> int:
        """Where a line meets it at its side."""
        return self.top + self.height // 2

    def svg(self) -> str:
        """The box."""
        kind = "verdict" if self.name == "verdict" else "step"
        texts = "".join(
            f'<text x="{self.left + 8}" y="{self.top + HEAD + LINE * number}">'
            f"{html.escape(line)}</text>"
            for number, line in enumerate(self.lines, 1)
        )
        return (
            f'<g class="{kind}"><rect x="{self.left}" y="{self.top}" width="{WIDTH}"'
            f' height="{self.height}" rx="5"/><text class="name" x="{self.left + 8}"'
            f' y="{self.top + 18}">{html.escape(self.name)}</text>{texts}</g>'
        )


def graph(title: str, steps: Sequence[tuple[str, str]]) -> str:
    """Steps as boxes: the way of the change from top to bottom, what it met beside the verdict."""
    way = _column((step for step in steps if step[0] not in BEFORE), LEFT, GAP)
    verdict = next((box for box in way if box.name == "verdict"), way[-1])
    right = LEFT + WIDTH + BETWEEN
    seen = [step for step in steps if step[0] in BEFORE]
    needs = sum(box.height + GAP for box in _column(seen, right, 0)) - GAP
    met = _column(seen, right, max(GAP, verdict.bottom - needs))
    drawn = [*(box.svg() for box in (*way, *met)), *_links(way, met, verdict)]
    return _PAGE.format(
        title=html.escape(title),
        colours=COLOURS,
        width=right + WIDTH + LEFT,
        height=max(box.bottom for box in (*way, *met)) + GAP,
        body="".join(drawn),
    )


def _column(steps: Iterable[tuple[str, str]], left: int, top: int) -> list[StoryBox]:
    boxes = list[StoryBox]()
    for name, text in steps:
        boxes.append(StoryBox(name, _lines(text), left, top))
        top = boxes[-1].bottom + GAP
    return boxes


def _lines(text: str) -> tuple[str, ...]:
    """The whole text, broken between words, and within one that is longer than a line."""
    return tuple(
        part for line in text.splitlines() or [""] for part in textwrap.wrap(line, COLUMNS) or [""]
    )


def _links(way: Sequence[StoryBox], met: Sequence[StoryBox], verdict: StoryBox) -> Iterator[str]:
    middle = LEFT + WIDTH // 2
    for one, following in pairwise(way):
        yield _line(middle, one.bottom, middle, following.top)
    for box in met:
        yield _line(box.left, box.middle, LEFT + WIDTH, verdict.middle)


def _line(x1: int, y1: int, x2: int, y2: int) -> str:
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>'
