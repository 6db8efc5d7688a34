"""RUVs by data set: the hub's, or the last that a consumer acknowledged."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from checkpoints.reading.reader import Reader
from streaming.config.config import Config
from streaming.core.model.errors import ConfigError
from streaming.core.model.ruv import Ruv
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.hub_state import HubState
from streaming.facts.names import agreement_named, committed


@dataclass(frozen=True, slots=True)
class KnownRuvs:
    """The RUV of each data set, and the hub epoch up to which they are complete."""

    covers: int
    generation: int
    ruvs: Mapping[str, Ruv]

    def document(self) -> dict[str, Any]:
        """The facts as one JSON document."""
        return {"covers": self.covers, "generation": self.generation} | ruv_document(self.ruvs)


def ruv_document(known: Mapping[str, Ruv]) -> dict[str, Any]:
    """RUVs for JSON: `ruv` where there is one, `ruvs` by data set where there are several."""
    if len(known) > 1:
        return {"ruvs": {name: ruv.text() for name, ruv in known.items()}}
    return {"ruv": [line for ruv in known.values() for line in ruv.text()]}


def hub_ruvs(reader: Reader, dataset: str | None) -> KnownRuvs:
    """The hub's RUV of one data set, or of each; ConfigError for an unknown one."""
    hub = committed(reader)
    return KnownRuvs(hub.hub_epoch, hub.generation, _picked(hub, dataset))


def acked_ruv(config: Config, reader: Reader, agreement: str, dataset: str | None) -> KnownRuvs:
    """A consumer's last acknowledged RUV; ConfigError if that is of another data set."""
    hub = committed(reader)
    _picked(hub, dataset)
    one = agreement_named(config, agreement)
    state, served = state_of(hub, one.name), config.dataset_of(one)
    if dataset not in (None, served):
        raise ConfigError(f"agreement {agreement!r} serves the data set {served!r}: name that one")
    return KnownRuvs(state.acked_covers, hub.generation, {served: state.acked_ruv})


def state_of(hub: HubState, agreement: str) -> AgreementState:
    """The agreement's state; that of a new one if the hub has none yet."""
    return hub.agreements.get(agreement, AgreementState(agreement, 0))


def _picked(hub: HubState, dataset: str | None) -> Mapping[str, Ruv]:
    if dataset is None:
        return hub.ruvs
    if dataset not in hub.ruvs:
        known = ", ".join(hub.ruvs) or "none is known"
        raise ConfigError(f"there is no data set {dataset!r}: use one of {known}")
    return {dataset: hub.ruvs[dataset]}
