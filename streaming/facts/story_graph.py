"""The story of a change as a graph in one HTML file: what came in, the verdict, what followed."""

import html
from collections.abc import Iterable, Sequence

BEFORE = ("against", "had seen", "had to see", "came too late")
"""The steps that are inputs of the verdict, beside the way of the change."""

BOX, GAP, LEFT, WIDTH = 46, 22, 20, 460
"""Height and gap of a box, its left edge and its width, in pixels."""

_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{title}</title>
<style>
svg {{ font: 13px system-ui, sans-serif; }} rect {{ fill: #fff; stroke: #667; }}
.verdict rect {{ fill: #ffd; stroke-width: 2; }} line {{ stroke: #667; }} .name {{ fill: #667; }}
</style>
<h1>{title}</h1>
<svg width="{width}" height="{height}" role="img">{body}</svg>
</html>
"""


def graph(title: str, steps: Sequence[tuple[str, str]]) -> str:
    """Steps as boxes: the way of the change from top to bottom, what it met beside the verdict."""
    way = [step for step in steps if step[0] not in BEFORE]
    met = [step for step in steps if step[0] in BEFORE]
    at = next((n for n, (name, _) in enumerate(way) if name == "verdict"), len(way) - 1)
    first = max(0, at - len(met) + 1)
    right = LEFT + WIDTH + 60
    parts = [*_column(way, LEFT, 0), *_column(met, right, first), *_links(way, met, first, at)]
    height = (max(len(way), first + len(met)) + 1) * (BOX + GAP)
    return _PAGE.format(
        title=html.escape(title), width=right + WIDTH + 20, height=height, body="".join(parts)
    )


def _top(number: int) -> int:
    return GAP + number * (BOX + GAP)


def _column(steps: Sequence[tuple[str, str]], left: int, first: int) -> Iterable[str]:
    for number, (name, text) in enumerate(steps, start=first):
        top, kind = _top(number), "verdict" if name == "verdict" else "step"
        shown = text if len(text) < 70 else f"{text[:67]}..."
        yield (
            f'<g class="{kind}"><title>{html.escape(text)}</title>'
            f'<rect x="{left}" y="{top}" width="{WIDTH}" height="{BOX}" rx="5"/>'
            f'<text class="name" x="{left + 8}" y="{top + 18}">{html.escape(name)}</text>'
            f'<text x="{left + 8}" y="{top + 36}">{html.escape(shown)}</text></g>'
        )


def _links(way: Sequence[object], met: Sequence[object], first: int, verdict: int) -> Iterable[str]:
    middle = LEFT + WIDTH // 2
    for number in range(len(way) - 1):
        yield _line(middle, _top(number) + BOX, middle, _top(number + 1))
    for number in range(len(met)):
        there = _top(first + number) + BOX // 2
        yield _line(LEFT + WIDTH + 60, there, LEFT + WIDTH, _top(verdict) + BOX // 2)


def _line(x1: int, y1: int, x2: int, y2: int) -> str:
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>'
