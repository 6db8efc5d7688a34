"""The alerts, held by promtool against series that fire them and series that must not."""

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from connectors.agent.metrics import METRICS
from streaming.metrics.catalogue import HUB_METRICS
from tests.docs.test_links import anchors

CHECKOUT = Path(__file__).parents[2]
RULES = CHECKOUT / "deploy" / "prometheus" / "alerts.yaml"

HUB_LABELS = 'job="slackwater",instance="hub:9470"'
C = f'{HUB_LABELS},agreement="c",consumer="c"'
B = f'{HUB_LABELS},replica="b"'
DAY = 24 * 60
LONG = 10
"""Series of more than some hours have a value every ten minutes, all others one each minute."""
DAYS = 3 * DAY // LONG


@dataclass(frozen=True, slots=True)
class AlertCase:
    """Series that fire an alert within some minutes, and series that do not within as many."""

    alert: str
    minutes: int
    fires: dict[str, str]
    silent: dict[str, str]

    @property
    def interval(self) -> str:
        """From one value of a series to the next, and from one evaluation to the next."""
        return f"{LONG if self.minutes > 600 else 1}m"


def case(alert: str, minutes: int, fires: dict[str, str], **silent: dict[str, str]) -> Any:  # noqa: ANN401
    """The cases of one alert: `silent` by what keeps it quiet."""
    return [
        pytest.param(AlertCase(alert, minutes, fires, series), id=f"{alert}-{why}")
        for why, series in silent.items()
    ]


def one(name: str, labels: str, values: str) -> dict[str, str]:
    """One series in promtool's notation."""
    return {f"{name}{{{labels}}}": values}


def state(of: str, name: str, labels: str, values: str) -> dict[str, str]:
    """Whether an agreement or a replica is in a state."""
    return one(f"slackwater_{of}_state", f'{labels},state="{name}"', values)


LAG = "slackwater_agreement_lag_seconds"
BEHIND = "slackwater_agreement_lag_changes"
ACKED = f'{C},position="acked"'
SEEN = "slackwater_replica_last_seen_timestamp_seconds"
AHEAD = "slackwater_replica_clock_ahead_seconds"
FREE, DISK = "slackwater_state_free_bytes", "slackwater_state_disk_bytes"
EPOCH, HORIZON = "slackwater_hub_epoch", "slackwater_purge_horizon_epoch"
HOLD = "slackwater_agreement_hold_left_seconds"
CHECKPOINT = "slackwater_delta_checkpoint_timestamp_seconds"
VERSION = "slackwater_delta_table_version"
ROWS = f'{HUB_LABELS},table="rows"'
QUARANTINED = "slackwater_quarantined_total"
BUDGET = "slackwater_replica_quarantine_budget_ratio"
INFO = "slackwater_build_info"
EXPIRY = "slackwater_certificate_expiry_timestamp_seconds"
OPTION = f'{HUB_LABELS},option="ssl.ca.location"'
JOURNAL = "slackwater_agent_journal_backlog"
KEPT, ROOM = "slackwater_agent_log_held_bytes", "slackwater_agent_log_room_bytes"
COMPARED = "slackwater_compared_timestamp_seconds"
UNDER_WAY = "slackwater_batch_under_way_seconds"

CASES = [
    *case(
        *("SlackwaterDown", 4, one("up", HUB_LABELS, "0x10")),
        restart=one("up", HUB_LABELS, "1 0 1 1 1 1 1"),
        another_job=one("up", 'job="node"', "0x10"),
    ),
    *case(
        *("SlackwaterNotReady", 7, one("slackwater_ready", HUB_LABELS, "0x10")),
        start=one("slackwater_ready", HUB_LABELS, "0 0 1x10"),
    ),
    *case(
        *("SlackwaterNotMoving", 5, one(UNDER_WAY, HUB_LABELS, "0+60x10")),
        busy=one(UNDER_WAY, HUB_LABELS, "20 0 30 90 10 0"),
    ),
    *case(
        "SlackwaterRestarts",
        30,
        one("process_start_time_seconds", HUB_LABELS, "1x5 2x5 3x5 4x20"),
        deployed=one("process_start_time_seconds", HUB_LABELS, "1x10 2x40"),
    ),
    *case(
        *("SlackwaterTwoHubs", 3, one("slackwater_hubs_seen", HUB_LABELS, "2x10")),
        one=one("slackwater_hubs_seen", HUB_LABELS, "1x10"),
    ),
    *case(
        "SlackwaterVersionMismatch",
        40,
        one(INFO, f'{HUB_LABELS},version="1"', "1x60")
        | one(INFO, 'job="slackwater",instance="b",version="2"', "1x60"),
        same=one(INFO, f'{HUB_LABELS},version="1"', "1x60")
        | one(INFO, 'job="slackwater",instance="b",version="1"', "1x60"),
        deployed=one(INFO, f'{HUB_LABELS},version="1"', "1x10")
        | one(INFO, 'job="slackwater",instance="b",version="2"', "1x60"),
    ),
    *case(
        *("SlackwaterCertificateExpires", 5, one(EXPIRY, OPTION, f"{13 * DAY * 60}x10")),
        next_month=one(EXPIRY, OPTION, f"{30 * DAY * 60}x10"),
    ),
    *case(
        *("SlackwaterNotLevel", 12, one(LAG, C, "0+60x20")),
        level=one(LAG, C, "0x20"),
        short=one(LAG, C, "0+60x7 0x20"),
    ),
    *case(
        *("SlackwaterLagGrowing", 40, one(BEHIND, ACKED, "20000+600x60")),
        large_and_shrinking=one(BEHIND, ACKED, "90000-600x60"),
        small=one(BEHIND, ACKED, "0+10x60"),
    ),
    *case(
        "SlackwaterFlapping",
        20,
        state("agreement", "in_sync", C, "1 0 1 0 1 0 1 0 1 0x20"),
        back_once=state("agreement", "in_sync", C, "1x5 0x5 1x20"),
    ),
    *case(
        *("SlackwaterAgreementStopped", 3, state("agreement", "refused", C, "1x10")),
        in_sync=state("agreement", "in_sync", C, "1x10") | state("agreement", "refused", C, "0x10"),
    ),
    *case(
        *("SlackwaterHubBehind", 1, state("agreement", "hub_behind", C, "1x10")),
        not_so=state("agreement", "hub_behind", C, "0x10"),
    ),
    *case(
        *("SlackwaterInputLost", 1, state("replica", "input_lost", B, "1x10")),
        not_so=state("replica", "input_lost", B, "0x10"),
    ),
    *case(
        *("SlackwaterReplicaSilent", 10, one(SEEN, B, "0x20")),
        heartbeat=one(SEEN, B, "0+60x20"),
        retired=one(SEEN, B, "0x20") | state("replica", "retired", B, "1x20"),
    ),
    *case(
        *("SlackwaterReplicaPaused", 7, one("slackwater_replica_paused", B, "1x10")),
        short=one("slackwater_replica_paused", B, "1x3 0x10"),
    ),
    *case(
        *("SlackwaterReplicaUnreadable", 3, one("slackwater_replica_unreadable", B, "1x10")),
        back=one("slackwater_replica_unreadable", B, "1x1 0x10"),
    ),
    *case(
        "SlackwaterPendingTooOld",
        70,
        one("slackwater_pending_oldest_seconds", B, "0+60x100"),
        many_short=one("slackwater_pending_oldest_seconds", B, "0+60x50 0+60x50"),
    ),
    *case(
        "SlackwaterQuarantineGrowing",
        10,
        one(QUARANTINED, f'{B},reason="json"', "0 0 0 5x10"),
        old=one(QUARANTINED, f'{B},reason="json"', "5x20"),
    ),
    *case(
        *("SlackwaterQuarantineBudget", 7, one(BUDGET, B, "0.9x10")),
        little=one(BUDGET, B, "0.5x10"),
    ),
    *case(
        *("SlackwaterRowsDiffer", 20, one("slackwater_differing_rows", B, "1x30")),
        repaired=one("slackwater_differing_rows", B, "1x5 0x30"),
    ),
    *case(
        *("SlackwaterComparedRowsDiffer", 10, one("slackwater_compared_differing_rows", C, "2x20")),
        repaired=one("slackwater_compared_differing_rows", C, "2x3 0x20"),
    ),
    *case(
        *("SlackwaterComparisonOld", 2 * DAY + 60, one(COMPARED, C, f"0x{DAYS}")),
        each_day=one(COMPARED, C, f"0+{LONG * 60}x{DAYS}"),
    ),
    *case(
        *("SlackwaterClockSkew", 2, one(AHEAD, B, "25000x5")),
        an_hour=one(AHEAD, B, "3600x5"),
    ),
    *case(
        *("SlackwaterClockSkewHigh", 2, one(AHEAD, B, "50000x5")),
        six_hours=one(AHEAD, B, "25000x5"),
    ),
    *case(
        *("SlackwaterClockSkewRefused", 2, one(AHEAD, B, "90000x5")),
        twelve_hours=one(AHEAD, B, "50000x5"),
    ),
    *case(
        *("SlackwaterAgentBlocked", 10, one("slackwater_agent_held_seconds", B, "0+60x20")),
        short=one("slackwater_agent_held_seconds", B, "0+60x4 0+60x4"),
    ),
    *case(
        *("SlackwaterJournalGrowing", 40, one(JOURNAL, B, "9000+600x60")),
        drains=one(JOURNAL, B, "90000-600x60"),
        small=one(JOURNAL, B, "0+10x60"),
    ),
    *case(
        *("SlackwaterLogKept", 7, one(KEPT, B, "11e9x10") | one(ROOM, B, "9e18x10")),
        little=one(KEPT, B, "1e6x10") | one(ROOM, B, "9e18x10"),
        room=one(KEPT, B, "1e6x10") | one(ROOM, B, "5e9x10"),
    ),
    *case(
        *("SlackwaterLogKept", 7, one(KEPT, B, "1e6x10") | one(ROOM, B, "1e9x10")),
        neither=one(KEPT, B, "9e9x10") | one(ROOM, B, "3e9x10"),
    ),
    *case(
        "SlackwaterDiskFull",
        7,
        one(FREE, HUB_LABELS, "9x10") | one(DISK, HUB_LABELS, "100x10"),
        room=one(FREE, HUB_LABELS, "50x10") | one(DISK, HUB_LABELS, "100x10"),
    ),
    *case(
        "SlackwaterDiskFullSoon",
        11 * 60,
        one(FREE, HUB_LABELS, "4900-40x90") | one(DISK, HUB_LABELS, "10000x90"),
        steady=one(FREE, HUB_LABELS, "4900x90") | one(DISK, HUB_LABELS, "10000x90"),
        half_empty=one(FREE, HUB_LABELS, "9900-40x90") | one(DISK, HUB_LABELS, "10000x90"),
    ),
    *case(
        "SlackwaterCheckpointOld",
        27 * 60,
        one(CHECKPOINT, ROWS, f"0x{DAYS}") | one(VERSION, ROWS, f"0+20x{DAYS}"),
        idle=one(CHECKPOINT, ROWS, f"0x{DAYS}") | one(VERSION, ROWS, f"9x{DAYS}"),
    ),
    *case(
        "SlackwaterHoldEnds",
        6,
        one(HOLD, C, "86000-60x10"),
        later=one(HOLD, C, "90000-60x10"),
        back=one(HOLD, C, "86000 85940 +Inf +Inf +Inf +Inf +Inf +Inf"),
        over=one(HOLD, C, "0x10"),
    ),
    *case(
        "SlackwaterPurgeBlocked",
        2 * DAY + 60,
        one(EPOCH, HUB_LABELS, f"100+1x{DAYS}") | one(HORIZON, HUB_LABELS, f"50x{DAYS}"),
        follows=one(EPOCH, HUB_LABELS, f"100+1x{DAYS}") | one(HORIZON, HUB_LABELS, f"50+1x{DAYS}"),
        nothing_new=one(EPOCH, HUB_LABELS, f"100x{DAYS}") | one(HORIZON, HUB_LABELS, f"50x{DAYS}"),
    ),
]


def alerts() -> dict[str, dict[str, Any]]:
    """The alerts by name."""
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def promtool(*arguments: str | Path) -> str:
    """What promtool prints; it must be content."""
    done = subprocess.run(
        ["promtool", *arguments], capture_output=True, text=True, check=False, cwd=CHECKOUT
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_promtool_accepts_the_rules() -> None:
    """A file that Prometheus refuses leaves a hub without any alert."""
    assert f"{len(alerts())} rules found" in promtool("check", "rules", RULES)


@pytest.mark.parametrize("case", CASES)
def test_an_alert_fires_when_it_must_and_only_then(case: AlertCase, tmp_path: Path) -> None:
    """Too late is a loss, and too often is a pager that nobody reads."""
    asked = f'count by (alertname) (ALERTS{{alertstate="firing",alertname="{case.alert}"}})'
    fired = [{"labels": f'{{alertname="{case.alert}"}}', "value": 1}]
    tests = [
        {
            "interval": case.interval,
            "input_series": [{"series": k, "values": v} for k, v in series.items()],
            "promql_expr_test": [
                {"expr": asked, "eval_time": f"{case.minutes}m", "exp_samples": expected}
            ],
        }
        for series, expected in ((case.fires, fired), (case.silent, []))
    ]
    file = tmp_path / "test.yaml"
    every = {"evaluation_interval": case.interval, "rule_files": [str(RULES)]}
    file.write_text(json.dumps(every | {"tests": tests}))

    assert "SUCCESS" in promtool("test", "rules", file)


def test_each_alert_has_a_case() -> None:
    """A new alert is tried before it wakes somebody."""
    assert {param.values[0].alert for param in CASES} == set(alerts())


@pytest.mark.parametrize("name", alerts())
def test_an_alert_says_what_to_do(name: str) -> None:
    """Who is woken finds the section that its alert names, and why it matters."""
    rule = alerts()[name]

    path, _, anchor = rule["annotations"]["runbook"].partition("#")
    assert anchor in anchors(CHECKOUT / path)
    assert rule["labels"]["severity"] in {"page", "ticket"}
    assert rule["annotations"]["summary"]
    assert rule["annotations"]["description"].endswith(".")


def test_each_section_of_the_runbook_belongs_to_an_alert() -> None:
    """A section that no alert leads to is one that nobody keeps."""
    named = {rule["annotations"]["runbook"].partition("#")[2] for rule in alerts().values()}

    assert anchors(CHECKOUT / "docs" / "runbook.md") - {"runbook"} == named


def test_alerts_look_at_metrics_of_the_catalogue() -> None:
    """A renamed metric would be an alert that never fires again."""
    known = {one.name for one in HUB_METRICS} | {one.name for one in METRICS}
    asked = {
        name for rule in alerts().values() for name in re.findall(r"\bslackwater_\w+", rule["expr"])
    }

    assert asked <= known
