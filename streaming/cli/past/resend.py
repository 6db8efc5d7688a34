"""`replay --agreement`: send a consumer again what it was sent, from the changelog."""

from streaming.config.config import Config
from streaming.core.replay.span import Moment
from streaming.core.text.wording import as_count
from streaming.facts.names import agreement_named
from streaming.terminal.output import write_json, write_line


def resend(
    config: Config,
    agreement: str,
    begin: Moment,
    end: Moment | None,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Send the records of these hub epochs to an agreement again, with the ids that they had."""
    from connectors.kafka.sink import UpdatesSink  # noqa: PLC0415  # they import Spark
    from streaming.facts.history.past_rows import past  # noqa: PLC0415
    from streaming.replay.configured import ConfigsThen  # noqa: PLC0415
    from streaming.replay.report.answer import choose  # noqa: PLC0415
    from streaming.replay.resend import NotLogged, sent_again  # noqa: PLC0415

    agreement_named(config, agreement)
    topic, records, items, left_out = config.updates_topic(agreement), 0, 0, list[int]()
    kafka = config.kafka
    sink = None if dry_run else UpdatesSink(kafka.bootstrap_servers, kafka.options)
    try:
        with past(config) as store:
            marks = choose(store, begin, end).marks
            for one in sent_again(store, ConfigsThen(store), marks, agreement):
                if isinstance(one, NotLogged):
                    left_out.append(one.hub_epoch)
                    continue
                records, items = records + 1, items + one.items
                if sink is not None:
                    sink.send(topic, one.id.encode(), one.value)
        if sink is not None:
            sink.flush()
    finally:
        if sink is not None:
            sink.close()
    if as_json:
        found = {"agreement": agreement, "records": records, "items": items}
        write_json({**found, "sent": not dry_run, "not_logged": left_out})
        return
    done = "would be sent" if dry_run else "were sent"
    write_line(f"{as_count(records, 'record')} with {as_count(items, 'item')} {done} to {topic}")
    if left_out:
        epochs = ", ".join(map(str, left_out))
        write_line(
            f"left out: hub epochs {epochs}, ranges of a resync, whose rows are in no log;"
            f" `slackwater resync {agreement}` sends rows as they stand"
        )
