"""What a soak measures, sample by sample: whether it grows, and its picture.

A figure grows if the straight line through what is left of it after purges and compactions, in the
last third, rises by more than a share of its mean there. So what a hub fills at its beginning, as
its heap and its caches, is not held against it, nor what goes up and down.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np

GROWTH_MAX = 0.10
"""A figure may rise by this share of its mean within the last third."""

SPANS = 6
"""Of so many parts of the last third the smallest value is what is left."""

LEAST: Mapping[str, float] = {"bytes": 4 * 2**20, "files": 150.0}
"""By the end of its name: whatever stays below this is not held against anybody."""

_WIDTH, _HEIGHT, _LEFT, _GAP = 900, 150, 70, 46
_COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b", "#17becf", "#7f7f7f")


@dataclass(frozen=True, slots=True)
class SoakSample:
    """Figures by name, at so many seconds from the beginning."""

    at_s: float
    figures: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class SoakGrowth:
    """By which share of its mean what is left of a figure rises in the last third, from and to."""

    name: str
    first: float
    last: float
    share: float

    @property
    def is_too_much(self) -> bool:
        """Whether it is held against the hub."""
        least = LEAST.get(self.name.rpartition(".")[2], 0.0)
        return self.share > GROWTH_MAX and max(self.first, self.last) > least


def growth(samples: Sequence[SoakSample], name: str) -> SoakGrowth:
    """The growth of a figure in the last third of the time; ValueError without two samples."""
    after_s = samples[-1].at_s * 2 / 3
    late = [one for one in samples if one.at_s >= after_s]
    if len(late) < 2:
        raise ValueError("the last third has fewer than two samples: let it run for longer")
    spans = [[late[at] for at in part] for part in np.array_split(np.arange(len(late)), SPANS)]
    least = [min(span, key=lambda one: one.figures.get(name, 0.0)) for span in spans if span]
    at_s = np.array([one.at_s for one in least])
    values = np.array([one.figures.get(name, 0.0) for one in least])
    slope, base = np.polyfit(at_s - at_s[0], values, 1)
    rise, mean = slope * (at_s[-1] - at_s[0]), values.mean()
    share = rise / mean if mean else 0.0
    return SoakGrowth(name, float(base), float(base + rise), float(share))


def write_line(file: Path, sample: SoakSample, names: Sequence[str]) -> None:
    """Append a sample to a file of comma-separated values, behind the names if it is the first."""
    lines = [] if file.exists() else [",".join(["at_s", *names])]
    lines.append(",".join(f"{v:.12g}" for v in (sample.at_s, *_values(sample, names))))
    with file.open("a") as out:
        out.write("".join(f"{line}\n" for line in lines))


def _values(sample: SoakSample, names: Sequence[str]) -> list[float]:
    return [round(sample.figures.get(name, 0.0), 1) for name in names]


def picture(samples: Sequence[SoakSample], panels: Mapping[str, Sequence[str]]) -> str:
    """An SVG with a panel for each title, and in it a line for each figure, over the time."""
    height = len(panels) * (_HEIGHT + _GAP) + _GAP
    style = "font-family='sans-serif' font-size='11'"
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{_WIDTH}' height='{height}' {style}>",
        f"<rect width='{_WIDTH}' height='{height}' fill='white'/>",
    ]
    for place, (title, names) in enumerate(panels.items()):
        parts += _panel(samples, title, names, _GAP + place * (_HEIGHT + _GAP))
    return "\n".join([*parts, "</svg>", ""])


def _panel(
    samples: Sequence[SoakSample], title: str, names: Sequence[str], top: float
) -> list[str]:
    most = max((one.figures.get(n, 0.0) for one in samples for n in names), default=0.0) or 1.0
    ends_s = samples[-1].at_s or 1.0
    width, bottom = _WIDTH - _LEFT - 10, top + _HEIGHT
    parts = [
        f"<text x='{_LEFT}' y='{top - 18}' font-weight='bold'>{escape(title)}</text>",
        f"<path d='M{_LEFT} {top}V{bottom}H{_LEFT + width}' fill='none' stroke='#999'/>",
        f"<text x='{_LEFT - 6}' y='{top + 9}' text-anchor='end'>{most:.4g}</text>",
        f"<text x='{_LEFT - 6}' y='{bottom}' text-anchor='end'>0</text>",
        f"<text x='{_LEFT + width}' y='{bottom + 13}' text-anchor='end'>{ends_s:.0f} s</text>",
    ]
    x = float(_LEFT)
    for number, name in enumerate(names):
        colour = _COLOURS[number % len(_COLOURS)]
        points = " ".join(
            f"{_LEFT + one.at_s / ends_s * width:.1f},"
            f"{bottom - one.figures.get(name, 0.0) / most * _HEIGHT:.1f}"
            for one in samples
        )
        parts.append(f"<polyline points='{points}' fill='none' stroke='{colour}'/>")
        parts.append(f"<text x='{x:.0f}' y='{top - 4}' fill='{colour}'>{escape(name)}</text>")
        x += 12 + 6.5 * len(name)
    return parts
