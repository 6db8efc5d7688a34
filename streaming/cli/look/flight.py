"""`status --replica`: the hub epochs that a replica has not reflected yet, by stage."""

from dataclasses import asdict

from checkpoints.reading.reader import Reader
from streaming.cli.inputs import now
from streaming.config.config import Config
from streaming.core.text.wording import as_age, as_range
from streaming.facts.consumers.flight import EpochRange, ReplicaFlight, replica_flight
from streaming.terminal.output import write_json, write_pairs


def answer(config: Config, reader: Reader, name: str, *, as_json: bool) -> None:
    """Print the hub epochs in flight to and from a replica."""
    found = replica_flight(config, reader, name, now().timestamp())
    if as_json:
        write_json(asdict(found))
    else:
        _show(found)


def _show(found: ReplicaFlight) -> None:
    write_pairs(
        [
            ("replica", f"{found.replica}, {found.state}, as of {as_age(found.age_s)}"),
            ("current hub epoch", found.hub_epoch),
            ("max replicated epoch", _mre(found)),
            ("out, not sent yet", _unsent(found)),
            ("out, sent, not applied", _text(found.sent)),
            ("back, not read yet", _unread(found)),
        ]
    )


def _mre(found: ReplicaFlight) -> str:
    if found.mre_epoch is None:
        return "0: it has not sent a hello"
    return (
        f"{found.mre}, reflected in its epoch {found.mre_epoch};"
        f" counts for its changes from epoch {found.mre_counts_from} on"
    )


def _unsent(found: ReplicaFlight) -> str:
    text = _text(found.unsent)
    if found.agreement is None:
        return f"{text}; no agreement sends to it"
    skipped = found.nothing_for_it
    return f"{text}; nothing for it in {_text(skipped)}" if skipped else text


def _unread(found: ReplicaFlight) -> str:
    text = _text(found.unread)
    if found.doubt is None:
        return text
    return f"{text} known; epochs that it has applied may be listed under sent\n{found.doubt}"


def _text(epochs: EpochRange | None) -> str:
    return "none" if epochs is None else as_range(epochs.first, epochs.last)
