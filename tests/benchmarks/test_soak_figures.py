"""Whether a soak tells what grows from what goes up and down."""

import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.benchmarks.soak_figures import SoakSample, growth, picture, write_line

MIB = 2.0**20


def samples(value_at: Callable[[float], float]) -> list[SoakSample]:
    """An hour of samples, one in 20 s."""
    return [SoakSample(at_s, {"t.bytes": value_at(at_s)}) for at_s in range(0, 3_601, 20)]


@pytest.mark.parametrize(
    ("value_at", "grows"),
    [
        (lambda _: 50 * MIB, False),
        (lambda at_s: min(at_s, 1_800) * MIB, False),
        (lambda at_s: (50 + at_s % 180 / 10) * MIB, False),
        (lambda at_s: (5 + at_s % 180 / 10) * MIB, False),
        (lambda at_s: (5 + at_s / 1_000 + at_s % 180 / 10) * MIB, True),
        (lambda at_s: at_s * MIB, True),
        (lambda at_s: (50 + at_s / 100) * MIB, True),
        (lambda at_s: (500 + at_s / 100) * MIB, False),
        (lambda at_s: at_s * 1_000, False),
        (lambda at_s: (4_000 - at_s) * MIB, False),
        (lambda _: 0.0, False),
    ],
)
def test_only_what_rises_at_the_end_grows(
    value_at: Callable[[float], float], *, grows: bool
) -> None:
    """Not what a hub fills at first, not a saw, not what is small."""
    assert growth(samples(value_at), "t.bytes").is_too_much is grows


def test_a_soak_of_a_moment_says_nothing() -> None:
    """A line through one sample is none."""
    with pytest.raises(ValueError, match="let it run for longer"):
        growth([SoakSample(20, {})], "t.bytes")


def test_each_sample_is_a_line_behind_the_names(tmp_path: Path) -> None:
    """A soak that is killed leaves what it measured."""
    file = tmp_path / "soak.csv"

    for one in samples(lambda at_s: at_s)[:2]:
        write_line(file, one, ["t.bytes", "absent"])

    assert file.read_text() == "at_s,t.bytes,absent\n0,0,0\n20,20,0\n"


def test_a_picture_has_a_line_for_each_figure() -> None:
    """Names may have any characters."""
    of = [SoakSample(at_s, {"a<b": at_s, "c": 1.0}) for at_s in (0, 20)]

    found = ET.fromstring(picture(of, {"first": ["a<b", "c"], "second & last": ["c"]}))

    texts = [one.text for one in found.iter("{http://www.w3.org/2000/svg}text")]
    assert len(list(found.iter("{http://www.w3.org/2000/svg}polyline"))) == 3
    assert {"first", "second & last", "a<b"} <= {*texts}
