"""A page of HTML that a command writes: one file with all it needs, whose tables can be sorted."""

import html
from collections.abc import Iterable, Sequence

from streaming.facts.page_style import COLOURS

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


def report_page(title: str, parts: Iterable[str]) -> str:
    """The page of a report with these parts, which are HTML."""
    body = "\n".join(parts)
    return _PAGE.format(title=html.escape(title), style=_STYLE, script=_SORT, body=body)


def paragraph(text: str) -> str:
    """A paragraph of plain text."""
    return f"<p>{html.escape(text)}</p>"


def page_table(title: str, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table with its heading; without rows it says so."""
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
