"""Leases: who reads a state keeps what is there, and who died does not."""

import logging
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from checkpoints.maintenance.leases import (
    EXPIRES_S,
    LEASES,
    Lease,
    LeaseWatch,
    fresh_leases,
    leased,
    recorded_leases,
)
from checkpoints.root import replace_file


def write(root: Path, lease: Lease, name: str = "one") -> None:
    """Write a lease as a command does."""
    replace_file(root, f"{LEASES}/{name}", lease.text())


VERIFY = Lease("verify", "host:1", 1)


def test_a_lease_is_there_as_long_as_its_command_reads(tmp_path: Path) -> None:
    """And is renewed meanwhile."""
    watch = LeaseWatch(tmp_path)

    with leased(tmp_path, "verify", renew_s=0.01):
        first = watch.alive()
        deadline_s = time.monotonic() + 60
        while watch.alive()[0].renewals < 3 and time.monotonic() < deadline_s:
            time.sleep(0.01)
        later = watch.alive()
        shown = fresh_leases(tmp_path)

    assert [one.command for one in (*first, *later, *shown)] == ["verify"] * 3
    assert later[0].renewals >= 3
    assert watch.alive() == fresh_leases(tmp_path) == []
    assert list((tmp_path / LEASES).iterdir()) == []


def test_a_lease_that_is_not_renewed_expires_by_the_clock_of_who_watches(tmp_path: Path) -> None:
    """That of the command may be wrong by years."""
    now_s = [1_000.0]
    watch = LeaseWatch(tmp_path, clock=lambda: now_s[0])
    write(tmp_path, VERIFY)

    found = []
    for later_s in (0, EXPIRES_S - 1, EXPIRES_S + 1, 2 * EXPIRES_S):
        now_s[0] = 1_000 + later_s
        if later_s == EXPIRES_S - 1:
            write(tmp_path, replace(VERIFY, renewals=1))
        found.append(bool(watch.alive()))

    assert found == [True, True, True, False]
    assert recorded_leases(tmp_path) == {}


def test_a_lease_that_is_not_renewed_is_not_shown(tmp_path: Path) -> None:
    """No hub may run that would remove it."""
    write(tmp_path, VERIFY)
    old_s = time.time() - EXPIRES_S - 1

    shown = fresh_leases(tmp_path)
    os.utime(tmp_path / LEASES / "one", (old_s, old_s))

    assert shown == [VERIFY]
    assert fresh_leases(tmp_path) == []


@pytest.mark.parametrize("content", [b"", b"{}", b'{"x": 1}', b"[1]"])
def test_what_is_no_lease_keeps_nothing(tmp_path: Path, content: bytes) -> None:
    """An editor's copy, or half a file."""
    replace_file(tmp_path, f"{LEASES}/one", content)

    assert LeaseWatch(tmp_path).alive() == []


def test_who_may_not_write_reads_all_the_same(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """An auditor may have no right to write; he is told what that costs."""
    (tmp_path / LEASES).write_text("a file in the place of the folder")

    with caplog.at_level(logging.WARNING), leased(tmp_path, "verify"):
        pass

    assert "verify cannot keep a hub from purging what it reads" in caplog.text


def test_several_commands_have_a_lease_each(tmp_path: Path) -> None:
    """The end of one leaves the others theirs."""
    with leased(tmp_path, "verify"):
        with leased(tmp_path, "backup"):
            both = LeaseWatch(tmp_path).alive()
        left = LeaseWatch(tmp_path).alive()

    assert sorted(one.command for one in both) == ["backup", "verify"]
    assert [one.command for one in left] == ["verify"]
