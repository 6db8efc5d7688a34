"""A replay as one HTML file that needs nothing else: charts, and tables that can be sorted."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from streaming.core.text.wording import as_numbered
from streaming.facts.report_page import page_table, paragraph, report_page
from streaming.replay.report.answer import HELD, ReplayAnswer
from streaming.replay.report.tally import Bucket

WIDTH, HEIGHT = 720, 160
"""Of a chart, in pixels, without its axes."""
LEFT, TOP, RIGHT, BOTTOM = 56, 12, 48, 30
"""The room beside it for the labels of its axes."""


def html_report(found: ReplayAnswer) -> str:
    """The answer as an HTML document."""
    first, last = found.span.from_epoch, found.span.to_epoch
    title = f"Replay of {as_numbered('hub epoch', first, last)}"
    parts = [_summary(found), _chart(found.tally.buckets()), _groups(found)]
    parts += [_verdicts(found), _rows(found)] if found.what_if.is_something else [_facts(found)]
    return report_page(title, parts)


def _summary(found: ReplayAnswer) -> str:
    recorded, then = found.tally.totals()
    lines = [f"{found.batches} batches, {recorded.judged} changes, {_time(found.first_ms)} to"]
    lines[0] += f" {_time(found.last_ms)}."
    if found.what_if.is_something:
        lines.append(f"What if {', '.join(found.what_if.texts())}: {HELD}.")
        lines.append(
            f"{then.in_conflict} changes would have been in conflict, {recorded.in_conflict} were;"
            f" {found.verdict_count} verdicts would be others, {found.row_count} rows would stand"
            " otherwise."
        )
    elif found.is_equal:
        lines.append("Equal: everything comes out as it is recorded.")
    else:
        lines.append(f"Different: {found.count.total()} facts come out otherwise.")
    lines += [f"Not asked: {one.text}." for one in found.unasked]
    return "\n".join(map(paragraph, lines))


def _chart(buckets: Sequence[Bucket]) -> str:
    """Conflicts along time: as they are recorded beside what comes out."""
    top = max((max(one.recorded, one.replayed) for one in buckets), default=0)
    if not top:
        return "<p>No change was in conflict.</p>"
    step = WIDTH / len(buckets)
    bars = [
        _bar(number * step + side * step * 0.4, step * 0.4, count / top, name, _time(one.at_ms))
        for number, one in enumerate(buckets)
        for side, (name, count) in enumerate(
            (("recorded", one.recorded), ("replayed", one.replayed))
        )
    ]
    box = f"0 0 {LEFT + WIDTH + RIGHT} {TOP + HEIGHT + BOTTOM}"
    label = "Changes in conflict along time (UTC): grey as recorded, orange as replayed"
    drawn = "".join((*_counts_axis(top), *bars, *_time_axis(buckets)))
    return (
        f'<figure><svg viewBox="{box}" role="img" aria-label="{label}">{drawn}</svg>'
        f"<figcaption>{label}.</figcaption></figure>"
    )


def _counts_axis(top: int) -> Iterator[str]:
    """A line for 0, the half and the most that a bar has, each with its number."""
    for count in sorted({0, top // 2, top}):
        y = TOP + HEIGHT - HEIGHT * count / top
        yield f'<line x1="{LEFT}" y1="{y:.1f}" x2="{LEFT + WIDTH}" y2="{y:.1f}"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{count}</text>'


def _time_axis(buckets: Sequence[Bucket]) -> Iterator[str]:
    """The times of the first bar, of the middle one and of the last, below them."""
    step, last, y = WIDTH / len(buckets), len(buckets) - 1, TOP + HEIGHT
    for number in sorted({0, last // 2, last}):
        x = LEFT + (number + 0.4) * step
        anchor = "start" if number == 0 else "end" if number == last else "middle"
        time = _time(buckets[number].at_ms)
        yield f'<line x1="{x:.1f}" y1="{y}" x2="{x:.1f}" y2="{y + 5}"/>'
        yield f'<text x="{x:.1f}" y="{y + 20}" text-anchor="{anchor}">{time}</text>'


def _bar(left: float, width: float, share: float, name: str, title: str) -> str:
    height, x = share * HEIGHT, LEFT + left
    return (
        f'<rect class="{name}" x="{x:.1f}" y="{TOP + HEIGHT - height:.1f}" width="{width:.1f}"'
        f' height="{height:.1f}"><title>{title}</title></rect>'
    )


def _groups(found: ReplayAnswer) -> str:
    heads = ("table", "application", "changes", "in conflict", "replayed", "rejected", "replayed")
    sides = [(g, found.tally.recorded[g], found.tally.replayed[g]) for g in found.tally.groups()]
    rows = [
        (*group, a.judged, a.in_conflict, b.in_conflict, a.rejected, b.rejected)
        for group, a, b in sides
    ]
    return page_table("By table and application", heads, rows)


def _verdicts(found: ReplayAnswer) -> str:
    heads = ("hub epoch", "change", "application", "table", "key", "was", "would be")
    rows = (
        (one.hub_epoch, one.csn, one.app, one.table, one.key, one.recorded, one.then)
        for one in found.verdicts
    )
    return page_table("Changed verdicts", heads, rows)


def _rows(found: ReplayAnswer) -> str:
    heads = ("table", "key", "application", "column", "stands as", "would stand as")
    rows = (
        (one.table, one.key, one.app, column, mine, theirs)
        for one in found.rows
        for column, (mine, theirs) in one.columns.items()
    )
    return page_table("Rows that would stand otherwise", heads, rows)


def _facts(found: ReplayAnswer) -> str:
    heads = ("hub epoch", "what", "id", "table", "key", "fact", "recorded", "replayed")
    rows = (
        (one.hub_epoch, d.part, d.id, d.table, d.key, d.fact, d.recorded, d.replayed)
        for one in found.differences
        for d in (one.difference,)
    )
    return page_table("Differences", heads, rows)


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
