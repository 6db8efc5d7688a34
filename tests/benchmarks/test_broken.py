"""Broken records must be as different as life makes them, or a cache would look like a fast hub."""

from tests.benchmarks import broken
from tests.benchmarks.load import Load


def test_every_broken_record_is_another() -> None:
    """A hub that remembers one of them must not get through with it."""
    records = list(broken.records(Load(1_700_000_000), "reader0", 4, 1_000))

    assert len(set(records)) == 1_000
