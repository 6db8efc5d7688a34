"""The page must not show a number that was not measured, nor lose one that was."""

from tests.benchmarks import page, report

KEPT: report.Numbers = {
    "machine": {"day": "2026-01-01", "commit": "aaaaaaa", "cores": 2},
    "throughput": {"day": "2026-01-01", "commit": "aaaaaaa", "hub_per_s": 70_000},
    "backlog": {"day": "2026-01-01", "commit": "aaaaaaa", "ratio_to_throughput": 0.8},
}
BY_HAND = "\n## How to read it\n\nSlowly.\n"


def test_a_measure_without_a_result_is_marked() -> None:
    """A headline that leaves a row out hides what was promised."""
    text = page.page(KEPT, BY_HAND)

    assert f"in another way | {page.NOT_MEASURED} | >= 15000 |  |" in text
    assert f"### bad\n\n{page.MEASURES['bad']}\nIt is {page.NOT_MEASURED}.\n" in text


def test_a_missed_target_is_shown() -> None:
    """A miss is a result as well."""
    assert "| ratio_to_throughput | 0.8 | >= 0.9 | NO |" in page.page(KEPT, BY_HAND)


def test_a_new_result_leaves_the_other_measures_with_their_commits() -> None:
    """A part of the measures may be run again; each states when it ran."""
    result: report.Numbers = {"machine": {"cores": 4}, "throughput": {"hub_per_s": 1, "rounds": []}}

    merged = page.merged(KEPT, result, "2026-02-02", "bbbbbbb")

    assert merged["throughput"] == {"day": "2026-02-02", "commit": "bbbbbbb", "hub_per_s": 1}
    assert merged["backlog"] == KEPT["backlog"]


def test_what_is_written_by_hand_stays() -> None:
    """It stands between the headline and the table of all measures."""
    once = page.page(KEPT, BY_HAND)

    assert page.by_hand_of(once) == BY_HAND
    assert page.page(KEPT, page.by_hand_of(once)) == once


def test_headline_and_targets_name_measures_of_the_page() -> None:
    """A row whose name no measure writes would never get a result."""
    names = [*page.HEADLINE, *report.TARGETS]

    assert {name.partition(".")[0] for name in names} <= page.MEASURES.keys()
