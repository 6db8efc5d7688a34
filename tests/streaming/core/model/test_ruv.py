"""RUVs: the text form of real servers, and the laws of covering and merging."""

import pytest
from hypothesis import given

from streaming.core.model.errors import RuvError
from streaming.core.model.ruv import Element, Ruv, RuvComparison, parse_ruv
from tests.harness.builders import csn
from tests.streaming.core.delivery.logs import csns, ruvs

LOW, HIGH = "6b006264000000010000", "6b006335000000010000"
URL = "ldap://localhost:31389"


@pytest.mark.parametrize(
    ("line", "element"),
    [
        (f"{{replica 1 {URL}}}", Element(url=URL)),
        ("{replica 1}", Element()),
        ("{replica 1 }", Element()),
        ("{Replica 0001}", Element()),
        (f"{{replica 1 {URL}}} {LOW}", Element(LOW, LOW, URL)),
        (f"{{replica 1 {URL}}} {LOW} {HIGH}", Element(LOW, HIGH, URL)),
        (f"{{replica 1}} {LOW} {HIGH}", Element(LOW, HIGH)),
        (f"{{replica 1}} {LOW} {HIGH} 6b006560", Element(LOW, HIGH)),
        (f"{{replica 1}} {LOW} 6b006560", Element(LOW, LOW)),
        (f"{{replica 1}} {LOW.upper()} {HIGH.upper()}", Element(LOW, HIGH)),
        (f" {{replica 1 {URL}}}  {LOW}  {HIGH} \n", Element(LOW, HIGH, URL)),
        (
            f"{{replica 1 {URL}}} 00000000000000010000 {HIGH} 00000000",
            Element("00000000000000010000", HIGH, URL),
        ),
    ],
)
def test_an_element_is_read_with_any_number_of_fields(line: str, element: Element) -> None:
    """Real servers write 0 to 3 fields behind the brace, with and without a URL."""
    assert parse_ruv([line]).elements == {1: element}


@pytest.mark.parametrize(
    "line",
    [
        "",
        "replica 1",
        "{replica one}",
        "{replica 65536}",
        f"{{replica 1}} {LOW} {HIGH} {HIGH}",
        f"{{replica 1}} {LOW} {HIGH} 6b006560 6b006560",
        "{replica 1} 6b006560",
        "{replica 1} 6b00626400000001000",
        f"{{replica 2}} {LOW} {HIGH}",
    ],
)
def test_a_line_that_is_no_element_is_named(line: str) -> None:
    """A RUV that is half understood would skip or repeat changes."""
    with pytest.raises(RuvError, match="is not an element of a RUV"):
        parse_ruv([line])


def test_the_rid_is_decimal_in_a_ruv() -> None:
    """A CSN writes the same rid in hexadecimal."""
    ruv = parse_ruv(["{replica 258} 6b0062b9000101020000 6b006336000001020000"])

    assert ruv.covers("6b006335000001020000")


def test_of_doubled_elements_and_generations_the_first_counts() -> None:
    """Servers have written both twice; 389's own look-ups find the first."""
    ruv = parse_ruv(
        [
            "{replicageneration} a",
            "{replicageneration} b",
            f"{{replica 1}} {LOW} {LOW}",
            f"{{replica 1}} {LOW} {HIGH}",
        ]
    )

    assert ruv == Ruv("a", {1: Element(LOW, LOW)})


@given(ruvs())
def test_a_ruv_comes_back_from_its_text(ruv: Ruv) -> None:
    """Round trip, elements without CSNs and without URLs included."""
    assert parse_ruv(ruv.text()) == ruv


def test_nothing_is_covered_of_an_unknown_replica() -> None:
    """Also when it is known by name only."""
    assert not Ruv().covers(LOW)
    assert not Ruv(elements={1: Element(url=URL)}).covers(LOW)


@given(ruvs(), csns)
def test_what_was_added_is_covered_and_nothing_is_lost(ruv: Ruv, new: str) -> None:
    """The max moves only upwards."""
    after = ruv.with_csn(new)

    assert after.covers(new)
    assert after.covers_all(ruv)


@given(ruvs(), csns)
def test_adding_what_is_covered_changes_nothing(ruv: Ruv, new: str) -> None:
    """A duplicate leaves no trace."""
    assert ruv.with_csn(new).with_csn(new) == ruv.with_csn(new)


@given(ruvs(), ruvs())
def test_covering_is_covering_every_max(one: Ruv, two: Ruv) -> None:
    """The definition, and that equal positions cover each other."""
    assert one.covers_all(two) == all(one.covers(c) for c in two.max_csns().values())
    assert (one.max_csns() == two.max_csns()) == (one.covers_all(two) and two.covers_all(one))


@given(ruvs(), ruvs(), ruvs())
def test_covering_is_transitive(one: Ruv, two: Ruv, three: Ruv) -> None:
    """So a chain of hubs may be reasoned about link by link."""
    middle = two.merge(three)

    assert one.merge(middle).covers_all(middle)
    assert one.merge(middle).covers_all(three)


@given(ruvs(), ruvs())
def test_standing_is_seen_from_both_sides(one: Ruv, two: Ruv) -> None:
    """Ahead there is behind here."""
    mirror = {RuvComparison.AHEAD: RuvComparison.BEHIND, RuvComparison.BEHIND: RuvComparison.AHEAD}
    standing = one.compare(two)

    assert two.compare(one) == mirror.get(standing, standing)
    assert (standing is RuvComparison.EQUAL) == (one.max_csns() == two.max_csns())


@given(ruvs(("",)), ruvs(("",)), ruvs(("",)))
def test_merging_is_a_join(one: Ruv, two: Ruv, three: Ruv) -> None:
    """The order in which positions are learned does not matter, nor learning one twice."""
    assert _csns(one.merge(two)) == _csns(two.merge(one))
    assert one.merge(two).merge(three) == one.merge(two.merge(three))
    assert _csns(one.merge(one)) == _csns(one)


@given(ruvs(), ruvs(), ruvs())
def test_a_merge_is_the_smallest_that_covers_both(one: Ruv, two: Ruv, upper: Ruv) -> None:
    """Nothing is claimed that neither side knew."""
    both = one.merge(two)

    assert both.covers_all(one)
    assert both.covers_all(two)
    assert (upper.covers_all(one) and upper.covers_all(two)) == upper.covers_all(both)


def _csns(ruv: Ruv) -> dict[int, tuple[str | None, str | None]]:
    return {rid: (e.min_csn, e.max_csn) for rid, e in ruv.elements.items()}


def test_a_max_can_be_set_down_and_forgotten() -> None:
    """What a consumer lost is taken out of its RUV; min never stands above max."""
    ruv = Ruv(elements={1: Element(csn(5, 1), csn(9, 1), URL)})

    assert ruv.with_max(1, csn(7, 1)).elements[1] == Element(csn(5, 1), csn(7, 1), URL)
    assert ruv.with_max(1, csn(3, 1)).elements[1] == Element(csn(3, 1), csn(3, 1), URL)
    assert ruv.with_max(1, None).elements[1] == Element(url=URL)
