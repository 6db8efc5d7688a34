"""Check finds the first broken rule of every bad record, and lets every good one through."""

import json
import math
from collections.abc import Mapping

import pytest

from streaming.core.model.errors import RuvError, WireError
from streaming.core.model.ruv import parse_ruv
from streaming.core.model.table import ColumnType, Table
from streaming.core.model.truncation import ALL_KEYS
from streaming.core.model.values import from_json, json_text, to_json
from streaming.core.records.check import CheckedRecord, Limits, check
from streaming.core.records.record import Reason, RecordKind
from tests.harness.raw_records import CONTROL, CSN, TABLES, change, control, keyed, typed
from tests.harness.record_cases import (
    BAD,
    FIRST,
    GOOD,
    NO_OBJECT,
    RECORD_BYTES,
    TOKENS,
)

assert {*CONTROL, RecordKind.CHANGE} == {*RecordKind}, "a kind is in no case"

LIMITS = Limits(record_bytes=RECORD_BYTES)
LARGE = Limits(record_bytes=10**7)


def checked(value: bytes, limits: Limits = LIMITS, *tables: Table) -> CheckedRecord:
    """A record of replica 1, checked under the tables of the cases and these."""
    known = {**TABLES, **{table.name: table for table in tables}}
    return check(value, 1, known, limits)


def fits(kind: ColumnType, token: str) -> bool:
    """As the consumer does: the value is read, and written back unchanged."""
    given = json.loads(token)
    try:
        value = from_json(given, kind)
    except (WireError, OverflowError):
        return False
    if kind is ColumnType.FLOAT64 and not isinstance(given, str):
        return given is None or math.isfinite(float(given))
    written = json_text(to_json(value, kind))
    return kind in (ColumnType.TEXT, ColumnType.FLOAT64) or written == canonical(token)


def canonical(token: str) -> str:
    """A token with no more escapes than needed."""
    return json_text(json.loads(token)) if token.startswith('"') else token


@pytest.mark.parametrize("name", GOOD)
def test_a_good_record_passes(name: str) -> None:
    """Quarantine of a good record would be an update lost."""
    found = checked(GOOD[name])

    assert (found.reason, found.detail) == (None, None)
    assert found.session == json.loads(GOOD[name])["session"]


def test_a_write_in_a_table_of_others_is_refused() -> None:
    """A replica with rights in Kafka could otherwise change tables that are not its own."""
    mine = Limits(record_bytes=RECORD_BYTES, writes={1: frozenset({"lines"}), 2: frozenset()})
    wild = change(table='"nowhere"')

    found = checked(change(), mine)

    assert (found.reason, found.table) == (Reason.RIGHTS, "orders")
    assert found.detail == "replica 1 may not write table orders, but: lines"
    assert found.key == '{"id":"1"}'
    assert checked(change(after='{"id":1}'), mine).reason == Reason.RIGHTS
    assert checked(wild, mine).reason == Reason.TABLE
    assert checked(change(), Limits(writes={1: frozenset({"orders"})})).reason is None
    assert checked(change(), Limits(writes={2: frozenset()})).reason is None
    assert checked(control("heartbeat"), mine).reason is None


@pytest.mark.parametrize("name", [name for name in GOOD if b'"change"' in GOOD[name]])
def test_a_repeat_is_known_whatever_changed_in_the_configuration(name: str) -> None:
    """An agent that died publishes again what was accepted; it is no forbidden write by that."""
    before = checked(GOOD[name])

    forbidden = checked(GOOD[name], Limits(writes={1: frozenset()}))
    too_large = checked(GOOD[name], Limits(record_bytes=len(GOOD[name]) - 1))

    assert (forbidden.reason, too_large.reason) == (Reason.RIGHTS, Reason.SIZE)
    assert before.content
    assert forbidden.content == too_large.content == before.content


def test_a_truncate_of_a_table_that_is_gone_is_known_as_well() -> None:
    """It has no key, however that is written."""
    value = change(op='"truncate"', key=None, after=None)
    before = checked(value)

    gone = check(value, 1, {})

    assert (before.reason, gone.reason) == (None, Reason.TABLE)
    assert gone.content == before.content


@pytest.mark.parametrize("name", BAD)
def test_a_bad_record_has_its_reason(name: str) -> None:
    """An operator sees which rule it breaks, and where."""
    reason, detail, value = BAD[name]

    found = checked(value)

    assert found.reason == reason
    assert detail in (found.detail or "")
    assert len(found.detail or "") < 400


@pytest.mark.parametrize("name", NO_OBJECT)
def test_what_is_not_one_json_object_is_no_record(name: str) -> None:
    """Half a record may look like another one, so nothing else is believed of it."""
    found = checked(NO_OBJECT[name])

    assert found == CheckedRecord(Reason.JSON, found.detail)


@pytest.mark.parametrize("reason", FIRST)
def test_the_first_broken_rule_counts(reason: Reason) -> None:
    """The order of the rules does not depend on who looks."""
    assert checked(FIRST[reason]).reason == reason


@pytest.mark.parametrize("kind", ColumnType)
@pytest.mark.parametrize("blank", ["", " "])
def test_a_value_fits_its_column_or_not(kind: ColumnType, blank: str) -> None:
    """The hub accepts what a consumer reads, and nothing else."""
    for token in TOKENS:
        found = checked(typed(kind, token, blank=blank))
        expected = None if fits(kind, token) else Reason.TABLE
        assert found.reason == expected, (token, found.detail)
        if expected is None:
            image = json.dumps({"id": "1", **dict.fromkeys(ColumnType), kind: 0})
            text = image.replace(" ", "").replace(f'"{kind}":0', f'"{kind}":{canonical(token)}')
            assert found.after == text


@pytest.mark.parametrize("kind", ColumnType)
@pytest.mark.parametrize("blank", ["", " "])
def test_a_key_fits_its_columns_or_not(kind: ColumnType, blank: str) -> None:
    """One row must have one key text, whoever wrote it."""
    for token in TOKENS:
        found = checked(keyed(kind, token, blank=blank))
        expected = None if fits(kind, token) and token != "null" else Reason.KEY
        assert found.reason == expected, (token, found.detail)
        if expected is None:
            assert found.key == f'{{"k":{canonical(token)}}}'


PARTIAL: Mapping[str, tuple[bool, str | None]] = {
    "insert": (False, '{"id":"1","name":"a","qty":5}'),
    "part of an image": (True, '{"id":"1","qty":5}'),
    "image without its key": (False, '{"id":"1","name":"a","qty":5}'),
    "empty image": (True, '{"id":"1"}'),
    "another order of columns": (False, '{"id":"1","name":"a","qty":5}'),
    "update with a part of before": (False, '{"id":"1","name":"a","qty":5}'),
    "delete": (False, None),
    "truncate": (False, None),
}


@pytest.mark.parametrize("name", PARTIAL)
def test_an_image_that_lacks_columns_is_partial(name: str) -> None:
    """It must be merged over the row; a key column is known from the key and filled in."""
    found = checked(GOOD[name])

    assert (found.partial, found.after) == PARTIAL[name]


def test_another_spelling_is_the_same_change() -> None:
    """A repeat by an agent of another version must be known as a repeat."""
    spellings = ("insert", "blanks", "another order of columns", "image without its key")

    assert len({checked(GOOD[name]).content for name in spellings}) == 1


@pytest.mark.parametrize("name", ["truncate", "truncate with an empty key"])
def test_a_truncate_has_no_key(name: str) -> None:
    """An empty object is none either; what stands for all keys is the same for both."""
    assert checked(GOOD[name]).key == ALL_KEYS


AS_WRITTEN = ("1.10", "1E+2", "-0", "0.12345678901234567891", "-0.0", "1e16", "1E5")


@pytest.mark.parametrize("token", AS_WRITTEN)
def test_a_float_stays_as_it_was_written(token: str) -> None:
    """A number that is printed anew would be another change than the one its agent has."""
    found = checked(typed(ColumnType.FLOAT64, token))

    assert f'"float64":{token}' in (found.after or "")


def test_a_table_of_many_columns_is_checked_like_any_other() -> None:
    """Only core looks at it where its pattern would be too long."""
    names = [f"column_{number:03}" for number in range(400)]
    wide = Table("wide", ("column_000",), dict.fromkeys(names, ColumnType.INT64))
    key, after = {"column_000": "0"}, dict.fromkeys(names, "0")
    good = change(table='"wide"', key=json_text(key), after=json_text(after))
    bad = change(table='"wide"', key=json_text(key), after=json_text({**after, "column_399": 0}))

    assert checked(good, LARGE, wide).after == json_text(after)
    assert checked(bad, LARGE, wide).reason is Reason.TABLE


LONG = ("x" * 10**6, "\\u00e9" * 10**5, "\\n" * 10**5, "A" * 4 * 10**5, "9" * 10**5)


@pytest.mark.parametrize("kind", ColumnType)
@pytest.mark.parametrize("value", LONG, ids=lambda value: value[:2])
def test_a_very_long_value_is_good_or_bad_like_any_other(kind: ColumnType, value: str) -> None:
    """A poison record of a megabyte must not stop the hub."""
    found = checked(typed(kind, f'"{value}"'), LARGE)

    assert (found.reason is None) == fits(kind, f'"{value}"')
    assert len(found.detail or "") < 400


def test_a_number_of_very_many_digits_is_no_float() -> None:
    """It is JSON, and beyond what any column holds."""
    assert checked(typed(ColumnType.FLOAT64, "9" * 10**5), LARGE).reason is Reason.TABLE


@pytest.mark.parametrize("depth", [100, 5_000, 200_000])
def test_a_deeply_nested_value_is_refused(depth: int) -> None:
    """Python's stack must not be what decides whether the hub goes on."""
    nested = "[" * depth + "]" * depth

    found = checked(change(after=f'{{"id":"1","name":{nested},"qty":5}}'), LARGE)

    assert found.reason in (Reason.TABLE, Reason.JSON)


def test_a_hello_names_so_many_columns_and_no_more() -> None:
    """Each start reads it again, and so does every `status`."""
    names = '"",' * 9_999 + '""'

    most = checked(control("hello", unreplicated=f"[{names}]"), LARGE)
    more = checked(control("hello", unreplicated=f'[{names},""]'), LARGE)

    assert most.reason is None
    assert more.reason is Reason.KIND


def test_a_record_of_many_times_the_size_is_not_parsed() -> None:
    """A hundred megabytes of brackets would take gigabytes; a little too large names its row."""
    named = checked(change(), Limits(record_bytes=len(change()) // 2))
    unnamed = checked(change(), Limits(record_bytes=len(change()) // 5))

    assert (named.reason, named.table) == (Reason.SIZE, "orders")
    assert (unnamed.reason, unnamed.table, unnamed.csn) == (Reason.SIZE, None, None)


LINES = [
    *("{replicageneration} 5f00", "{replicageneration}", "{replica 1}", "{Replica 1 }"),
    *(f"{{replica 1}} {CSN}", f"{{replica 1}} {CSN} {CSN}", f"{{replica 1}}{CSN}"),
    *(f"{{replica 1 ldap://h:389}} {CSN} {CSN} 65e0f1c0", f" {{replica 1}} {CSN} 65e0f1c0 "),
    *(f"{{REPLICA  1  ldap://h }}  {CSN.upper()}  {CSN}", "{replica 1 ldap://h}"),
    *("", "replica 1", "{replica}", "{replica x}", "{replica 1", f"{{replica 1}} {CSN[1:]}"),
    *("{replica 1} 65e0f1c0", f"{{replica 1}} {CSN} {CSN} {CSN}", "{replica 1 a b}"),
]


@pytest.mark.parametrize("line", LINES)
def test_a_ruv_is_accepted_in_every_form_that_core_reads(line: str) -> None:
    """Servers write 0 to 3 fields behind the brace, and the URL or not."""
    found = checked(control("applied", ruv=json.dumps([line])))

    assert (found.reason is None) == _is_read(line)


def _is_read(line: str) -> bool:
    try:
        parse_ruv([line])
    except RuvError:
        return False
    return True


def test_a_message_says_what_is_expected_and_what_came() -> None:
    """Who reads it must know what to write instead."""
    found = checked(keyed(ColumnType.INT64, "0"))

    assert found.detail == (
        "the key's column k of table by int64: expected an int64 as a JSON string, got the number 0"
    )
