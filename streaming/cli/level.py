"""`level`: are all consumers where the hub is? Exit 0: yes."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from checkpoints.reader import Reader
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath, names_of, now, opened
from streaming.cli.output import as_age, write_json, write_line, write_table
from streaming.config.config import Config
from streaming.config.sections import AgreementConfig
from streaming.core.delivery.lack import lack, own_counted
from streaming.core.model.command import CommandName
from streaming.core.model.ruv import Ruv
from streaming.core.model.state import AgreementState, HubState

POLL_S = 0.1
NO_COMMIT = "no commit yet"

WaitSeconds = Annotated[
    float, typer.Option("--wait", min=0, help="Wait so many seconds for it.", metavar="SECONDS")
]


@dataclass(frozen=True, slots=True)
class Lag:
    """How far a consumer's last word is behind the hub.

    `state`: the agreement's status as it is shown. `is_stopped`: nothing is sent to the consumer.
    `epochs`: hub epochs. `lacking`: the replicas of which it lacks a change. `has_spoken`: there
    was a hello, without which nothing of it is known.
    """

    agreement: str
    consumer: str
    state: str
    is_stopped: bool
    has_spoken: bool
    acked_covers: int
    epochs: int
    lacking: tuple[int, ...]

    @property
    def is_level(self) -> bool:
        """Claim that it has everything: the same covers and the same RUV."""
        has_all = self.epochs == 0 and not self.lacking
        return self.has_spoken and has_all and not self.is_stopped


def lag_of(reader: Reader, agreement: AgreementConfig, rid: int, dataset: str) -> Lag:
    """The lag of one agreement, by the consumer's own last word in its data set.

    `rid`: the consumer's; `dataset`: the agreement's.
    """
    if reader.commit is None:
        return Lag(
            agreement=agreement.name,
            consumer=agreement.consumer,
            state=NO_COMMIT,
            is_stopped=False,
            has_spoken=False,
            acked_covers=0,
            epochs=0,
            lacking=(),
        )
    hub = reader.commit.state
    known = hub.agreements.get(agreement.name, AgreementState(agreement.name, rid))
    return Lag(
        agreement=agreement.name,
        consumer=agreement.consumer,
        state=known.status_text,
        is_stopped=known.is_stopped,
        has_spoken=known.session is not None,
        acked_covers=known.acked_covers,
        epochs=hub.hub_epoch - known.acked_covers,
        lacking=tuple(lack(hub.ruv_of(dataset), acked(hub, known, rid, dataset)).starts),
    )


def acked(hub: HubState, agreement: AgreementState, rid: int, dataset: str) -> Ruv:
    """What the consumer has by its own last word; its own changes count as known to it."""
    own = hub.ruv_of(dataset).max_of(rid)
    return own_counted(agreement.acked_ruv, rid, own) if own else agreement.acked_ruv


def lags(config: Config, reader: Reader) -> list[Lag]:
    """The lag of each configured agreement."""
    return [
        lag_of(reader, a, config.replica(a.consumer).rid, config.dataset_of(a))
        for a in config.agreements
    ]


def level(
    *, config: ConfigPath = DEFAULT_CONFIG, as_json: AsJson = False, wait: WaitSeconds = 0
) -> None:
    """Exit 0 when every consumer has acknowledged all that the hub has; else say who lags.

    A running hub is told to tell lagging consumers at once that they are complete.
    """
    deadline = time.monotonic() + wait
    configured, reader = opened(config)
    found = lags(configured, reader)
    if not all(lag.is_level for lag in found):
        _nudge(reader)
    while not all(lag.is_level for lag in found) and time.monotonic() < deadline:
        time.sleep(POLL_S)
        configured, reader = opened(config)
        found = lags(configured, reader)
    if as_json:
        write_json(facts(configured, reader, found))
    else:
        _show(configured, reader, found)
    if not all(lag.is_level for lag in found):
        raise typer.Exit(1)


def _nudge(reader: Reader) -> None:
    from streaming.cli.command import ask_hub  # noqa: PLC0415  # most often all are level

    ask_hub(reader, CommandName.LEVEL, None, now())


def facts(config: Config, reader: Reader, found: Sequence[Lag]) -> dict[str, Any]:
    """What `level --json` says."""
    commit = reader.commit
    names = names_of(config)
    return {
        "level": all(lag.is_level for lag in found),
        "hub_epoch": commit.state.hub_epoch if commit else 0,
        "age_s": _age_s(reader),
        "agreements": [
            {
                "name": lag.agreement,
                "consumer": lag.consumer,
                "state": lag.state,
                "level": lag.is_level,
                "acked_covers": lag.acked_covers,
                "lag_epochs": lag.epochs,
                "lacking": [names.get(rid, str(rid)) for rid in lag.lacking],
            }
            for lag in found
        ],
    }


def _show(config: Config, reader: Reader, found: Sequence[Lag]) -> None:
    age_s = _age_s(reader)
    when = "no batch is committed yet" if age_s is None else f"last commit {as_age(age_s)}"
    if all(lag.is_level for lag in found):
        write_line(f"level: {len(found)} agreements at hub epoch {_hub_epoch(reader)}, {when}")
        return
    write_line(f"not level: hub epoch {_hub_epoch(reader)}, {when}")
    names = names_of(config)
    write_table(
        ("agreement", "consumer", "state", "acked", "lag", "lacks changes of"),
        (
            (
                lag.agreement,
                lag.consumer,
                lag.state,
                lag.acked_covers,
                lag.epochs,
                ", ".join(names.get(rid, str(rid)) for rid in lag.lacking),
            )
            for lag in found
            if not lag.is_level
        ),
    )


def _hub_epoch(reader: Reader) -> int:
    return reader.commit.state.hub_epoch if reader.commit else 0


def _age_s(reader: Reader) -> float | None:
    return now().timestamp() - reader.commit.at_ms / 1000 if reader.commit else None
