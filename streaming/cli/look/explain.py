"""`explain`: the whole story of one change, or the history of a row."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from streaming.cli.exit_codes import cannot_say
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath, csn_argument, opened
from streaming.cli.past.replay import HtmlFile
from streaming.config.config import Config
from streaming.core.conflict.judge import Verdict
from streaming.core.model.errors import QuestionError
from streaming.facts.history.explain import Explanation, Reflection
from streaming.facts.history.explain import explain as explained
from streaming.facts.names import author_name, names_of
from streaming.terminal.output import (
    as_time,
    write_file,
    write_json,
    write_line,
    write_pairs,
    write_table,
)

What = Annotated[
    list[str],
    typer.Argument(metavar="CSN | --row TABLE KEY", help="A change; or a row by table and key."),
]
IsRow = Annotated[bool, typer.Option("--row", help="Show the history of a row.")]
Row = Mapping[str, Any]


def explain(
    what: What,
    *,
    row: IsRow = False,
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: AsJson = False,
    html: HtmlFile = None,
) -> None:
    """Show why a change won or lost: what came when, what it met, and what it caused.

    The story of a change: when it came, what it waited for, what it was judged against, the
    reflection that set its MRE and the one that came too late, refreshes, its retry, and when each
    consumer had it. With --row every change and refresh of a row is listed.
    """
    with cannot_say():
        if row:
            _row(what, config, as_json=as_json)
            return
        csn = csn_argument(" ".join(what))
        configured, reader = opened(config)
        found = explained(reader, csn)
    if html is not None:
        _write_graph(found, configured, html)
    if as_json:
        write_json(asdict(found))
        return
    write_pairs(story(found, configured))


def _row(what: list[str], config: Path, *, as_json: bool) -> None:
    from streaming.facts.history import past_rows  # noqa: PLC0415  # it imports Spark

    if len(what) != 2:
        raise QuestionError("name the row by its table and its key")
    configured, reader = opened(config)
    key = past_rows.key_named(past_rows.table_named(configured, what[0]), what[1])
    found = past_rows.row_history(reader, what[0], key)
    if as_json:
        write_json(found)
        return
    names = names_of(configured)
    write_table(
        ("hub epoch", "what", "by", "change", "verdict", "MRE", "met", "row"),
        (
            (
                one["hub_epoch"],
                one["op"]
                if one["kind"] == "change"
                else f"refresh to {author_name(one['to'], names)}",
                author_name(one["rid"], names),
                one["csn"],
                one["verdict"] or one["cause"],
                one["mre"],
                one["row_csn"],
                one["image"],
            )
            for one in found
        ),
    )
    write_line(f"{len(found)} entries of {what[0]} {key}")


def story(found: Explanation, config: Config) -> Iterator[tuple[str, object]]:
    """The story as names and values, in the order in which it happened."""
    names, judged = names_of(config), found.judged
    yield "change", found.csn
    for kept in found.quarantine:
        yield "quarantine", f"{kept['id']}: {kept['reason']}, {kept['action']}; {kept['detail']}"
    if judged is None:
        for one in found.waited:
            yield one.action, f"since batch {one.batch} {one.reason or ''}".rstrip()
        return
    yield "row", f"{judged['table']} {judged['key']}"
    yield "wrote", f"{judged['op']} {judged['after'] or ''}".rstrip()
    if judged["prim_csn"]:
        yield "transaction", judged["prim_csn"]
    if judged["app"]:
        yield "application", judged["app"]
    yield "came", f"{_place(judged, config, names)}, {as_time(judged['time'])}"
    if found.repeats:
        yield "came again", f"at {', '.join(f'offset {n}' for n in found.repeats)}"
    for one in found.waited:
        yield "  " + one.action, f"batch {one.batch} {one.reason or ''}".rstrip()
    yield "judged", f"hub epoch {judged['hub_epoch']}, place {judged['place']}"
    yield "  against", _met(judged, names)
    yield "  had seen", f"hub epoch {judged['mre']} (MRE), {_reflection(found.set_by)}"
    if judged["realign_epoch"]:
        yield "  had to see", f"hub epoch {judged['realign_epoch']}, a refresh on its way"
    if found.too_late:
        yield "  came too late", f"hub epoch {found.too_late.covers}, {_reflection(found.too_late)}"
    yield "verdict", _verdict(judged)
    yield from _what_followed(found, names)


def _what_followed(found: Explanation, names: Mapping[int, str]) -> Iterator[tuple[str, object]]:
    for row in found.conflicts:
        loser, winner = author_name(row["loser_rid"], names), author_name(row["winner_rid"], names)
        yield "conflict", f"{row['id']}, {row['kind']}: {loser} lost to {winner}"
    for row in found.refreshes:
        yield "refresh", f"to {author_name(row['to'], names)} for {row['cause']}: {row['image']}"
    if found.retry:
        retry = found.retry
        yield "retry", f"{retry['csn']}, {retry['verdict']} in hub epoch {retry['hub_epoch']}"
    for one in found.covered:
        yield "covered", f"{one.agreement}, {as_time(one.at)}"


def _place(judged: Row, config: Config, names: Mapping[int, str]) -> str:
    name = names.get(judged["rid"])
    topic = config.changes_topic(name) if name else f"of replica {judged['rid']}"
    return f"{topic} offset {judged['offset']}, epoch {judged['epoch']}"


def _met(judged: Row, names: Mapping[int, str]) -> str:
    if judged["row_csn"] is None:
        return "no row of another replica"
    author = author_name(judged["row_author"], names)
    return f"{judged['row_csn']} of {author}, hub epoch {judged['row_epoch']}"


def _reflection(one: Reflection | None) -> str:
    if one is None:
        return "by no reflection"
    return f"by {one.kind} at offset {one.offset} in its epoch {one.epoch}"


def _verdict(judged: Row) -> str:
    cause = f", {judged['cause']}" if judged["cause"] else ", not concurrent"
    is_plain = judged["verdict"] == Verdict.ACCEPTED and not judged["cause"]
    return f"{judged['verdict']}{cause}" if judged["cause"] or is_plain else judged["verdict"]


def _write_graph(found: Explanation, config: Config, file: Path) -> None:
    from streaming.facts.history.story_graph import graph  # noqa: PLC0415

    steps = [(name.strip(), str(value)) for name, value in story(found, config)]
    write_file(file, graph(f"Change {found.csn}", steps[1:]))
