"""The hub as a process: what is checked before Spark starts, and what it runs."""

import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from checkpoints.commit import faults
from checkpoints.commit.lock import only_hub, start_again
from checkpoints.root import local_folder
from checkpoints.store import storage_errors
from connectors.kafka.options import LiveOptions
from connectors.live_value import LiveAccess
from connectors.logs import configure_logs, is_json
from streaming.config.config import Config
from streaming.config.errors import check
from streaming.config.functions import unlisted
from streaming.config.sources.live import with_options
from streaming.core.access.port_access import PortAccess
from streaming.core.access.secret_names import secrets_of
from streaming.facts.readiness import HubStage
from streaming.hub.comparison import compared_beside
from streaming.hub.config_at_start import ConfigAtStart
from streaming.hub.in_force import ConfigInForce
from streaming.hub.observe.extras import lineage, traced
from streaming.hub.observe.served import served
from streaming.hub.observe.view import HubView
from streaming.hub.observe.watchdog import Watchdog
from streaming.hub.outage import FAILURES, KafkaOutage
from streaming.hub.service import SCRATCH, Service
from streaming.hub.standby.rehearsal import Rehearsal
from streaming.hub.standby.window import StandbyWindow
from streaming.hub.stopping import StopSignals
from streaming.jvm.java import check_java
from streaming.jvm.java_log import json_log, text_log
from streaming.jvm.master import LOCAL, check_master

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG = logging.getLogger("slackwater")

FAULT_VARIABLE = "SLACKWATER_FAULT"


def run(
    path: Path,
    config: Config,
    stop: StopSignals,
    options: LiveOptions,
    access: LiveAccess,
    *,
    available_now: bool = False,
    standby: bool = False,
    replace_applied: bool = False,
) -> None:
    """Run the hub until a signal stops it.

    `path`: where the configuration is, for the process beside the hub. `options`, `access`:
    [kafka.options], and who may read the port, as they are now. `available_now`: process what is
    there, publish all of it, then end. `standby`: where another hub works on the state, wait until
    it does not, with Spark at work. `replace_applied`: also with a configuration that `config
    apply` has replaced. HubError: it could not start or go on, with the reason.
    StartInterrupted: it was stopped while it started.
    """
    check(unlisted(config.table_map().values(), config.functions.modules))
    check(config.masking_faults())
    view = HubView(config)
    options.changed = lambda now: _write_log(config, view, now, access.latest)
    access.changed = lambda now: _write_log(config, view, options.latest, now)
    _write_log(config, view, options.latest, access.latest)
    port = served(view, access)
    start = ConfigAtStart(path, config, replace_applied=replace_applied)
    at_work = _standby(view, start, port) if standby else _at_once(start, port)
    with storage_errors(config.hub.state), lineage(config), traced(view), at_work as own:
        config = own.config
        view.configured(config)
        outage = KafkaOutage(config, view, options)
        beside = nullcontext() if available_now else compared_beside(path, config)
        in_force = ConfigInForce(config)
        _run_on_spark(own, outage, in_force, stop, beside, available_now=available_now)


def _write_log(
    config: Config, view: HubView, options: Mapping[str, str], access: PortAccess
) -> None:
    """Write the log as the configuration says, without its secrets and those of these options."""
    secrets = secrets_of(*config.secret_options, options, {"token": access.token or ""})
    configure_logs(
        config.log.format, config.log.level, "slackwater", lambda: _fields(view), secrets
    )


def _fields(view: HubView) -> dict[str, object]:
    """What is in every line of the log."""
    return {"hub": view.config.hub.name, "hub_epoch": view.hub_epoch()}


class _AtWork(NamedTuple):
    """What a hub works with; `followed`: the window that it has kept up as a standby."""

    config: Config
    spark: "SparkSession"
    followed: StandbyWindow | None = None


@contextmanager
def _at_once(start: ConfigAtStart, port: AbstractContextManager[None]) -> Iterator[_AtWork]:
    """Spark, for the only hub: what can be refused without it is refused before it starts."""
    config = start.config
    with only_hub(config.hub.state):
        start.check()
        with port, _spark(config) as spark:
            yield _AtWork(config, spark)


@contextmanager
def _standby(
    view: HubView, start: ConfigAtStart, port: AbstractContextManager[None]
) -> Iterator[_AtWork]:
    """Spark, once no other hub works on the state: it is started, and warm, before that."""
    config = start.config
    view.stage = HubStage.STANDBY
    with port, _spark(config) as spark, closing(Rehearsal(config, spark)) as rehearsal:

        def waits(owner: str) -> None:
            LOG.info("stands by: %s works on the state", owner)
            rehearsal.start()

        with only_hub(config.hub.state, waits):
            rehearsal.stop()
            view.stage = HubStage.STARTING
            LOG.info("takes over the state in %s", config.hub.state)
            yield _AtWork(start.taken_over(), spark, rehearsal.window)


@contextmanager
def _spark(config: Config) -> Iterator["SparkSession"]:
    check_java()
    check_master(config.spark.get("spark.master", LOCAL))
    from streaming.jvm.bucket import bucket_settings  # noqa: PLC0415 - only now is Java known
    from streaming.jvm.session import started  # noqa: PLC0415 - to be there

    settings = {**_scratch(config), **bucket_settings(config.hub.state), **config.spark}
    json = is_json(config.log.format, sys.stderr)
    log = json_log(config.hub.name) if json else text_log()
    with started(f"slackwater {config.hub.name}", settings, log) as spark:
        yield spark


def _run_on_spark(
    own: _AtWork,
    outage: KafkaOutage,
    in_force: ConfigInForce,
    stop: StopSignals,
    beside: AbstractContextManager[None],
    *,
    available_now: bool,
) -> None:
    """Run one service after the other, each with Kafka's options and configuration of then.

    `beside`: entered once the first one is open, and so is its state.
    """
    view = outage.view
    reach = faults.parse_fault(os.environ.get(FAULT_VARIABLE))
    watchdog = _watchdog(view, own.spark)
    watchdog.start()
    followed, ends, is_open = own.followed, ExitStack(), False
    try:
        while True:
            service: Service | None = None
            try:
                config, options = with_options(outage.config, outage.options), outage.options
                service = Service(config, own.spark, reach, view, followed, options, in_force)
                outage.has_worked = True
                watchdog.waiting, watchdog.is_away = service.waiting, service.is_away
                stop.started()
                if not is_open:
                    ends.enter_context(beside)
                    is_open = True
                service.run(stop.end, available_now=available_now)
            except FAILURES as error:
                watchdog.waiting, watchdog.is_away = _nothing, view.is_waiting
                view.phases.give_up()
                is_missed = service is not None and service.poll.has_missed
                is_new = service is None and in_force.is_new
                if is_new and not outage.is_why(error, is_missed=is_missed):
                    _configure(in_force.fall_back(error), outage, watchdog)
                    continue
                if available_now or not outage.is_why(error, is_missed=is_missed):
                    raise
                view.stage = HubStage.STARTING
                if not outage.is_over(error, stop.end):
                    return
                start_again(outage.config.hub.state)
                followed = None  # it is older than what this process has committed since
            else:
                if not service.is_superseded:
                    return
                _configure(in_force.take_over(), outage, watchdog)
                followed = None
    finally:
        ends.close()
        watchdog.stop()


def _configure(config: Config, outage: KafkaOutage, watchdog: Watchdog) -> None:
    """Let what outlives a service know the configuration of the next one."""
    outage.config = config
    outage.view.configured(config)
    watchdog.waiting, watchdog.is_away = _nothing, outage.view.is_waiting
    watchdog.trigger_s = config.hub.trigger_ms / 1_000
    start_again(config.hub.state)


def _nothing() -> int:
    """How many records can be read while Kafka does not answer."""
    return 0


def _watchdog(view: HubView, spark: "SparkSession") -> Watchdog:
    from streaming.jvm.private import dump_java, kill_java  # noqa: PLC0415 as above

    return Watchdog(
        view.phases,
        view.config.hub.batch_timeout_s,
        view.config.hub.trigger_ms / 1_000,
        waiting=_nothing,
        is_away=view.is_waiting,
        dump_java=lambda: dump_java(spark),
        kill_java=lambda: kill_java(spark),
    )


def _scratch(config: Config) -> dict[str, str]:
    """Where Spark creates the folder that a MERGE needs; by default the current folder."""
    warehouse = local_folder(config.hub.state) / SCRATCH / "warehouse"
    return {"spark.sql.warehouse.dir": warehouse.absolute().as_uri()}
