"""`status --replica`: where every hub epoch is that a replica has not reflected yet."""

from collections.abc import Mapping
from typing import Any

from checkpoints.reader import Reader
from streaming.cli.inputs import committed, now
from streaming.cli.output import as_age, write_json, write_pairs
from streaming.config.config import Config
from streaming.config.sections import AgreementConfig
from streaming.core.delivery.flight import Epochs, applied_in, flight
from streaming.core.model.errors import ConfigError, SourceError
from streaming.core.model.state import AgreementState, ReplicaState

CONNECT_MS = 3_000
READ_MS = 5_000
"""How long it may take: who asks wants the answer now, and has most of it without a broker."""


def answer(config: Config, reader: Reader, name: str, *, as_json: bool) -> None:
    """Print the hub epochs in flight to and from a replica."""
    found = facts(config, reader, name)
    if as_json:
        write_json(found)
    else:
        _show(found)


def facts(config: Config, reader: Reader, name: str) -> dict[str, Any]:
    """What `status --replica --json` says; a range of hub epochs is {first, last}, none is null."""
    hub, rid = committed(reader), _rid(config, name)
    agreement = next((a for a in config.agreements if a.consumer == name), None)
    replica = hub.replicas.get(rid, ReplicaState(rid))
    of = agreement.name if agreement else ""
    sent = hub.agreements.get(of, AgreementState(of, rid))
    applied, doubt = _applied(config, reader, name, agreement)
    found = flight(hub.hub_epoch, replica.mre, sent.sent_covers, applied)
    reflected_in = replica.session.epochs[-1] if replica.session else None
    return {
        "replica": name,
        "rid": rid,
        "state": replica.status_text,
        "age_s": round(now().timestamp() - reader.commit.at_ms / 1000, 3) if reader.commit else 0,
        "agreement": of or None,
        "hub_epoch": found.hub_epoch,
        "mre": found.mre,
        "mre_epoch": reflected_in,
        "mre_counts_from": None if reflected_in is None else reflected_in + 1,
        "unsent": _range(found.unsent),
        "nothing_for_it": _range(range(found.unsent.start, sent.scanned + 1)),
        "sent": _range(found.sent),
        "unread": _range(found.unread),
        "doubt": doubt,
    }


def _rid(config: Config, name: str) -> int:
    rids = {replica.name: replica.rid for replica in config.replicas}
    if name not in rids:
        raise ConfigError(f"there is no replica {name!r}: use one of {', '.join(rids)}")
    return rids[name]


def _applied(
    config: Config, reader: Reader, name: str, agreement: AgreementConfig | None
) -> tuple[int, str | None]:
    """The largest covers in the part of its topic that the hub has not read; why that may be less.

    Without a broker it is 0: what is on the way back cannot be told from what was only sent.
    """
    from connectors.kafka.unread import unread  # noqa: PLC0415  # plain `status` needs no Kafka

    if agreement is None or reader.commit is None:
        return 0, None
    topic = config.changes_topic(name)
    offset = reader.commit.offsets.get(topic, 0)
    try:
        kafka = config.kafka
        found = unread(kafka.bootstrap_servers, kafka.options, topic, offset, CONNECT_MS, READ_MS)
    except SourceError as error:
        return 0, str(error)
    dataset = config.dataset_of(agreement)
    rid, dataset = config.replica(name).rid, config.dataset_of(agreement)
    applied = applied_in(found.said, reader.commit.state, rid, agreement.name, dataset)
    left = found.end - found.read_to
    return applied, f"{left} records of {topic} were not read in time" if left > 0 else None


def _range(epochs: Epochs) -> dict[str, int] | None:
    return {"first": epochs[0], "last": epochs[-1]} if epochs else None


def _show(found: Mapping[str, Any]) -> None:
    write_pairs(
        [
            ("replica", f"{found['replica']}, {found['state']}, as of {as_age(found['age_s'])}"),
            ("current hub epoch", found["hub_epoch"]),
            ("max replicated epoch", _mre(found)),
            ("out, not sent yet", _unsent(found)),
            ("out, sent, not applied", _text(found["sent"])),
            ("back, not read yet", _unread(found)),
        ]
    )


def _mre(found: Mapping[str, Any]) -> str:
    if found["mre_epoch"] is None:
        return "0: it never said hello"
    return (
        f"{found['mre']}, reflected in its epoch {found['mre_epoch']};"
        f" counts for its changes from epoch {found['mre_counts_from']} on"
    )


def _unsent(found: Mapping[str, Any]) -> str:
    text = _text(found["unsent"])
    if found["agreement"] is None:
        return f"{text}; no agreement sends it anything"
    skipped = found["nothing_for_it"]
    return f"{text}; nothing for it in {_text(skipped)}" if skipped else text


def _unread(found: Mapping[str, Any]) -> str:
    text = _text(found["unread"])
    if found["doubt"] is None:
        return text
    return f"{text} known; what it applied may stand under sent\n{found['doubt']}"


def _text(epochs: Mapping[str, int] | None) -> str:
    if epochs is None:
        return "none"
    first, last = epochs["first"], epochs["last"]
    return str(first) if first == last else f"{first}-{last}"
