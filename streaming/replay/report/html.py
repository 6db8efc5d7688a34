"""A replay as one HTML file that needs nothing else: charts, and tables that can be sorted."""

import html
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from streaming.core.text.wording import as_numbered
from streaming.facts.page_style import COLOURS
from streaming.replay.report.answer import HELD, ReplayAnswer
from streaming.replay.report.tally import Bucket

WIDTH, HEIGHT = 720, 160
"""Of a chart, in pixels, without its axes."""
LEFT, TOP, RIGHT, BOTTOM = 56, 12, 48, 30
"""The room beside it for the labels of its axes."""

_STYLE = f"""{COLOURS}
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 64em; padding: 0 1em; }}
table {{ border-collapse: collapse; width: 100%; margin: 1em 0; }}
th, td {{
  border-bottom: 1px solid var(--line); padding: .3em .6em; text-align: left;
  overflow-wrap: anywhere;
}}
th {{ cursor: pointer; }} td.n {{ text-align: right; font-variant-numeric: tabular-nums; }}
figure {{ margin: 1em 0; }} svg {{ width: 100%; }} figcaption {{ color: var(--soft); }}
svg text {{ font: 12px system-ui, sans-serif; fill: var(--soft); }}
svg line {{ stroke: var(--line); }}
.recorded {{ fill: var(--recorded); }} .replayed {{ fill: var(--replayed); }}
"""

_SORT = """
for (const head of document.querySelectorAll("th")) head.onclick = () => {
  const body = head.closest("table").tBodies[0], n = head.cellIndex;
  const down = head.dataset.down = head.dataset.down === "1" ? "" : "1";
  const value = row => row.cells[n].textContent;
  const order = (a, b) => value(a).localeCompare(value(b), "en", { numeric: true });
  for (const row of [...body.rows].sort((a, b) => down ? order(b, a) : order(a, b)))
    body.append(row);
};
"""

_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width">
<style>{style}</style>
<h1>{title}</h1>
{body}
<script>{script}</script>
</html>
"""


def html_report(found: ReplayAnswer) -> str:
    """The answer as an HTML document."""
    first, last = found.span.from_epoch, found.span.to_epoch
    title = f"Replay of {as_numbered('hub epoch', first, last)}"
    parts = [_summary(found), _chart(found.tally.buckets()), _groups(found)]
    parts += [_verdicts(found), _rows(found)] if found.what_if.is_something else [_facts(found)]
    return _PAGE.format(title=title, style=_STYLE, script=_SORT, body="\n".join(parts))


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
    return "\n".join(f"<p>{html.escape(line)}</p>" for line in lines)


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
    return _table("By table and application", heads, rows)


def _verdicts(found: ReplayAnswer) -> str:
    heads = ("hub epoch", "change", "application", "table", "key", "was", "would be")
    rows = (
        (one.hub_epoch, one.csn, one.app, one.table, one.key, one.recorded, one.then)
        for one in found.verdicts
    )
    return _table("Changed verdicts", heads, rows)


def _rows(found: ReplayAnswer) -> str:
    heads = ("table", "key", "application", "column", "stands as", "would stand as")
    rows = (
        (one.table, one.key, one.app, column, mine, theirs)
        for one in found.rows
        for column, (mine, theirs) in one.columns.items()
    )
    return _table("Rows that would stand otherwise", heads, rows)


def _facts(found: ReplayAnswer) -> str:
    heads = ("hub epoch", "what", "id", "table", "key", "fact", "recorded", "replayed")
    rows = (
        (one.hub_epoch, d.part, d.id, d.table, d.key, d.fact, d.recorded, d.replayed)
        for one in found.differences
        for d in (one.difference,)
    )
    return _table("Differences", heads, rows)


def _table(title: str, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in heads)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>\n" for row in rows)
    return (
        f"<h2>{title}</h2><table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>"
        if body
        else f"<h2>{title}</h2><p>None.</p>"
    )


def _cell(value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f'<td class="n">{value}</td>'
    return f"<td>{'-' if value is None else html.escape(str(value))}</td>"


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
