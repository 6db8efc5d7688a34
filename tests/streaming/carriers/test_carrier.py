"""Who carries a batch: where Spark runs decides, unless the configuration does."""

from typing import Literal

import pytest

from streaming.carriers.carrier import DRIVER_BATCH_RECORDS, is_carried_by_executors
from streaming.config.sections import LimitsConfig
from streaming.jvm.master import is_local_master


@pytest.mark.parametrize(
    ("records", "configured", "master", "expected"),
    [
        (10_000_000, "auto", "local[2]", False),
        (10_000_000, "auto", "local", False),
        (DRIVER_BATCH_RECORDS, "auto", "spark://master:7077", False),
        (DRIVER_BATCH_RECORDS + 1, "auto", "spark://master:7077", True),
        (DRIVER_BATCH_RECORDS + 1, "auto", "yarn", True),
        (DRIVER_BATCH_RECORDS + 1, "auto", "k8s://https://cluster:443", True),
        (DRIVER_BATCH_RECORDS + 1, "auto", "local-cluster[2,1,1024]", True),
        (1, 0, "local[2]", True),
        (0, 0, "local[2]", False),
        (101, 100, "local[2]", True),
        (200_000, 200_000, "yarn", False),
    ],
)
def test_executors_carry_large_batches_of_a_cluster_and_whatever_is_configured(
    records: int, configured: int | Literal["auto"], master: str, *, expected: bool
) -> None:
    """On one machine they only add work; on a cluster the driver alone would be the bound."""
    is_local = is_local_master(master)

    assert is_carried_by_executors(records, configured, is_local=is_local) is expected


def test_a_full_batch_of_a_cluster_is_carried_by_the_executors_by_default() -> None:
    """A bound above the largest batch would never be reached."""
    limits = LimitsConfig()

    assert limits.driver_batch_records == "auto"
    assert is_carried_by_executors(
        limits.offsets_per_batch, limits.driver_batch_records, is_local=False
    )
