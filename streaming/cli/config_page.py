"""docs/configuration.md from the sections' docstrings: `python -m streaming.cli.config_page`."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from streaming.cli.start.config import FieldDoc, fields, meanings
from streaming.config.config import ENV_PREFIX
from streaming.config.holding import HoldsFrom
from streaming.core.text.markdown import code, prose, table

PLACE = Path(__file__).parents[2] / "docs" / "configuration.md"

_HOLDING = "\n".join(
    f"- {code(name.lower())}: {prose(text)}." for name, text in meanings(HoldsFrom).items()
)
_HEAD = f"""\
# Configuration

This page is made from the sections in `streaming/config`; `make docs` writes it.
`slackwater config schema` prints the same, and `slackwater config check` lists the mistakes of a file.

The configuration is one file of TOML, `hub.toml` in the current folder unless `--config` names another.
Every value can be overridden from the environment as `{ENV_PREFIX}<SECTION>__<FIELD>`.
A section with `[]` is a list: `[[replicas]]`.
`deploy/hub.toml` is an example with every section.

"Holds from" says from when on a changed field holds where a hub has run; `slackwater config diff` says it of a file:

{_HOLDING}
"""
_COLUMNS = ("field", "type", "default", "holds from", "meaning")


def page() -> str:
    """The whole page."""
    sections = groupby(fields(), lambda one: one.path.rpartition(".")[0])
    return "\n".join([_HEAD, *(_section(name, found) for name, found in sections)])


def _section(name: str, found: Iterable[FieldDoc]) -> str:
    title = name.replace("[]", "") or "The file itself"
    kind = " (a list)" if name.endswith("[]") else ""
    return f"## {title}{kind}\n\n{table(_COLUMNS, map(_cells, found))}"


def _cells(one: FieldDoc) -> Iterator[str]:
    yield code(one.path.rpartition(".")[2])
    yield one.type
    yield "required" if one.default is None else code(one.default)
    yield one.holds
    yield prose(one.meaning)


if __name__ == "__main__":
    PLACE.write_text(page(), encoding="utf-8")
