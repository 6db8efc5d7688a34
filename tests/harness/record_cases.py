"""Records at the edges of every rule, good and bad, and values at the edges of every type."""

from streaming.core.records.record import Reason
from tests.harness.raw_records import CONTROL, CSN, change, control

RECORD_BYTES = 1_000
OTHER_CSN = "65e0f1c0000a00020000"


def padded(size: int) -> bytes:
    """A good change of exactly so many bytes."""
    fill = size - len(change(after='{"id":"1","name":"","qty":5}'))
    return change(after=f'{{"id":"1","name":"{"x" * fill}","qty":5}}')


def lines(key: str, after: str | None = None, op: str = '"delete"') -> bytes:
    """A change of the table with a key of two columns that is not in the order of its columns."""
    return change(table='"lines"', key=key, op=op, after=after)


GOOD: dict[str, bytes] = {
    "insert": change(),
    "update": change(op='"update"'),
    "update with before": change(op='"update"', before='{"id":"1","name":null,"qty":0}'),
    "update with a part of before": change(op='"update"', before='{"id":"1"}'),
    "delete": change(op='"delete"', after=None),
    "delete with null": change(op='"delete"', after="null"),
    "delete with before": change(op='"delete"', after=None, before='{"id":"1","name":"a","qty":5}'),
    "truncate": change(op='"truncate"', key=None, after=None),
    "truncate with an empty key": change(op='"truncate"', key="{}", after=None),
    "in a transaction": change(prim_csn='"65e0f1c0000900010000"'),
    "its first": change(prim_csn=f'"{CSN}"'),
    "no transaction": change(prim_csn="null"),
    "numbered": change(opno="1"),
    "not numbered": change(opno="null"),
    "epoch 0": change(epoch="0"),
    "largest epoch": change(epoch=str(2**63 - 1)),
    "with its app": change(app='"billing"'),
    "an app with an escape": change(app='"\\u00e9 \\"x\\""'),
    "an empty app": change(app='""'),
    "no app": change(app="null"),
    "hello with versions": control("hello", versions="[1,2]"),
    "hello without versions": control("hello", versions="null"),
    "hello with unreplicated": control("hello", unreplicated='["t.colour","t.ü"]'),
    "hello without unreplicated": control("hello", unreplicated="null"),
    "longest session": change(session=f'"{"é" * 200}"'),
    "longest session of a commit": control("commit", session=f'"{"x" * 200}"'),
    "unknown field": change(seen="5", more='{"v":{"v":{"after":{"id":"2"}}}}'),
    "CSN of decimal digits": change(csn='"65000000000000010000"'),
    "null in a column": change(after='{"id":"1","name":null,"qty":null}'),
    "part of an image": change(after='{"id":"1","qty":5}'),
    "image without its key": change(after='{"name":"a","qty":5}'),
    "empty image": change(after="{}"),
    "blanks": change().replace(b":", b" : ").replace(b",", b" ,\n"),
    "another order of columns": change(after='{"qty":5,"name":"a","id":"1"}'),
    "largest size": padded(RECORD_BYTES),
    "two key columns": lines('{"item":"a","order":"1"}'),
    "two key columns in an image": lines(
        '{"item":"a","order":"1"}', '{"order":"1","item":"a","price":"1.50"}', '"insert"'
    ),
    **{kind: control(kind) for kind in CONTROL},
    "first hello": control("hello", own="null", ruv="[]", covers="0", epoch="0", generation="0"),
    "hello without own": control("hello", own=None),
    "hello that lost": control("hello", lost="true"),
    "heartbeat of session 5": control("heartbeat", session='"5"'),
    "commit of a quoted session": control("commit", session='"\\"{}\\""'),
    "commit of session é": control("commit", session='"é"'),
    "commit with a blank": control("commit").replace(b":", b": ", 1),
    "commit and more": control("commit", more="1"),
    "end of a snapshot": control("snapshot", begin=None, end='{"id":"s1","count":0}'),
}

BAD: dict[str, tuple[Reason, str, bytes]] = {
    "a session too long": (Reason.KIND, "at most 200", change(session=f'"{"x" * 201}"')),
    "a commit of one": (Reason.KIND, "at most 200", control("commit", session=f'"{"x" * 201}"')),
    "a hello of one": (Reason.KIND, "at most 200", control("hello", session=f'"{"é" * 201}"')),
    "a long snapshot": (Reason.KIND, "at most 200", control("hello", snapshot=f'"{"x" * 201}"')),
    "a long id": (
        *(Reason.KIND, "at most 200"),
        control("snapshot", begin=f'{{"id":"{"x" * 201}","table":"orders"}}'),
    ),
    "a long id of a row": (
        *(Reason.KIND, "at most 200"),
        control("snapshot", begin=None, row=f'{{"id":"{"x" * 201}"}}'),
    ),
    "many versions": (Reason.KIND, "at most 100", control("hello", versions=f"[{'1,' * 100}1]")),
    "a long column": (
        *(Reason.KIND, "at most 400 characters"),
        control("hello", unreplicated=f'["{"x" * 401}"]'),
    ),
    "too deep": (Reason.JSON, "nested deeper than 100", change(more="[" * 100 + "]" * 100)),
    "no JSON": (Reason.JSON, "not one JSON object", b"{"),
    "an array": (Reason.JSON, "not one JSON object", b"[1]"),
    "not UTF-8": (Reason.JSON, "UTF-8", b'{"v":1,"kind":"\xff"}'),
    "garbage after": (Reason.JSON, "", change() + b"}"),
    "after ends in a bracket": (Reason.JSON, "", change(after='{"id":"9","name":"x"]')),
    "after ends in a letter": (Reason.JSON, "", change(after='{"id":"9","name":"x"X')),
    "before ends in a bracket": (Reason.JSON, "", change(before='{"id":"1"]')),
    "empty object": (Reason.VERSION, "field v: expected an integer from 1", b"{}"),
    "no v": (Reason.VERSION, "field v: expected an integer from 1", change(v=None)),
    "v null": (Reason.VERSION, "field v: expected an integer from 1", change(v="null")),
    "v a string": (Reason.VERSION, "field v: expected an integer from 1", change(v='"1"')),
    "v a fraction": (Reason.VERSION, "field v: expected an integer from 1", change(v="1.0")),
    "v true": (Reason.VERSION, "field v: expected an integer from 1", change(v="true")),
    "v 0": (Reason.VERSION, "field v: expected an integer from 1", change(v="0")),
    "v 2": (Reason.VERSION, "field v: 2 is newer than 1: upgrade", change(v="2")),
    "v huge": (Reason.VERSION, "", change(v=str(10**30))),
    "no kind": (Reason.KIND, "missing: kind", change(kind=None)),
    "unknown kind": (
        Reason.KIND,
        'got the string "chance"',
        change(kind='"chance"'),
    ),
    "kind in capitals": (Reason.KIND, '"CHANGE"', change(kind='"CHANGE"')),
    "kind an object": (Reason.KIND, "field kind: expected one of", change(kind="{}")),
    "app a number": (Reason.KIND, "field app: expected", change(app="5")),
    "app too long": (Reason.KIND, "field app: expected", change(app=f'"{"x" * 101}"')),
    "versions a number": (Reason.KIND, "field versions", control("hello", versions="1")),
    "unreplicated a text": (
        Reason.KIND,
        "field unreplicated",
        control("hello", unreplicated='"t.colour"'),
    ),
    "unreplicated of numbers": (
        Reason.KIND,
        "field unreplicated",
        control("hello", unreplicated="[1]"),
    ),
    "versions of 0": (Reason.KIND, "field versions", control("hello", versions="[0]")),
    "kind a list": (Reason.KIND, "field kind: expected one of", change(kind='["change"]')),
    "op an object": (Reason.KIND, "field op: expected one of", change(op='{"op":"insert"}')),
    "table an object": (Reason.TABLE, "is not in the configuration", change(table='{"t":1}')),
    "table half a surrogate pair": (Reason.TABLE, "not in", change(table='"\\ud83d"')),
    "csn an object": (Reason.CSN, "field csn: expected a CSN", change(csn='{"csn":1}')),
    "session half a surrogate pair": (
        Reason.SESSION,
        "field session: expected",
        change(session='"\\ud83d"'),
    ),
    "key half a surrogate pair": (Reason.KEY, "must be", change(key='{"\\ud83d":"1"}')),
    "refused of a number": (Reason.KIND, "field code", control("refused", code="5")),
    "no csn": (Reason.KIND, "missing: csn", change(csn=None)),
    "csn null": (Reason.KIND, "missing: csn", change(csn="null")),
    "no epoch, no op": (Reason.KIND, "missing: epoch, op", change(epoch=None, op=None)),
    "no table": (Reason.KIND, "missing: table", change(table=None)),
    "no key": (Reason.KIND, "missing: key", change(key=None)),
    "key null": (Reason.KIND, "missing: key", change(key="null", op='"delete"', after=None)),
    "no after": (Reason.KIND, "missing: after", change(after=None)),
    "after null": (Reason.KIND, "missing: after", change(after="null", op='"update"')),
    "after an array": (
        Reason.KIND,
        "field after: expected a JSON object",
        change(after='[{"id":"1"}]'),
    ),
    "after a number": (Reason.KIND, "field after: expected a JSON object", change(after="5")),
    "after a string": (
        Reason.KIND,
        "field after: expected a JSON object",
        change(after='"{\\"id\\":\\"1\\",\\"name\\":\\"a\\",\\"qty\\":5}"'),
    ),
    "delete with after": (Reason.KIND, "op is delete", change(op='"delete"')),
    "delete with a number": (Reason.KIND, "op is delete", change(op='"delete"', after="5")),
    "truncate with after": (Reason.KIND, "op is truncate", change(op='"truncate"', key=None)),
    "before a string": (
        Reason.KIND,
        "field before: expected a JSON object",
        change(before='"{\\"id\\":\\"1\\"}"'),
    ),
    "unknown op": (Reason.KIND, 'got the string "upsert"', change(op='"upsert"')),
    "epoch a string": (Reason.KIND, "field epoch: expected an integer", change(epoch='"3"')),
    "epoch a fraction": (Reason.KIND, "field epoch: expected an integer", change(epoch="3.0")),
    "epoch too large": (Reason.KIND, "field epoch: expected an integer", change(epoch=str(2**63))),
    "epoch negative": (Reason.KIND, "expected an integer from 0 on", change(epoch="-1")),
    "opno a string": (Reason.KIND, "field opno: expected an integer", change(opno='"1"')),
    "opno 0": (Reason.KIND, "expected an integer from 1 on", change(opno="0")),
    "opno negative": (Reason.KIND, "expected an integer from 1 on", change(opno="-5")),
    "refused key no object": (
        Reason.KIND,
        "field key: expected a JSON object",
        control("refused", key='["1"]'),
    ),
    "snapshot of nothing": (
        Reason.KIND,
        "begin or row or end",
        control("snapshot", begin=None),
    ),
    "snapshot no object": (Reason.KIND, "field begin: expected", control("snapshot", begin='"x"')),
    **{
        f"{kind} without {name}": (Reason.KIND, f"missing: {name}", control(kind, **{name: None}))
        for kind, fields in CONTROL.items()
        for name in fields
        if name not in {"own", "begin"}
    },
    **{
        f"{kind} with {name} of a wrong type": (Reason.KIND, name, control(kind, **{name: '"x"'}))
        for kind, fields in CONTROL.items()
        for name in ("epoch", "covers", "generation", "lost", "hub_epoch", "ruv")
        if name in fields
    },
    "covers negative": (
        Reason.KIND,
        "expected an integer from 0 on",
        control("applied", covers="-1"),
    ),
    "ruv of numbers": (Reason.KIND, "ruv", control("applied", ruv="[1]")),
    "ruv with null": (Reason.KIND, "ruv", control("applied", ruv="[null]")),
    "ruv without brace": (Reason.KIND, "ruv", control("hello", ruv=f'["replica 1 {CSN}"]')),
    "ruv of a bad CSN": (Reason.KIND, "ruv", control("hello", ruv='["{replica 1} 5f"]')),
    "own no CSN": (Reason.KIND, "own", control("hello", own='"5f"')),
    "csn in capitals": (
        Reason.CSN,
        "a JSON string of 20 lower-case",
        change(csn=f'"{CSN.upper()}"'),
    ),
    "csn too short": (Reason.CSN, "csn", change(csn=f'"{CSN[1:]}"')),
    "csn too long": (Reason.CSN, "csn", change(csn=f'"{CSN}0"')),
    "csn with a line break": (Reason.CSN, "csn", change(csn=f'"{CSN}\\n"')),
    "csn empty": (Reason.CSN, "csn", change(csn='""')),
    "csn of no hex digits": (Reason.CSN, '"-ffffffff', change(csn='"-ffffffff00000010000"')),
    "csn a number": (Reason.CSN, "csn", change(csn="65000000000000010000")),
    "prim_csn no CSN": (Reason.CSN, "field prim_csn: expected", change(prim_csn='"x"')),
    "prim_csn of a commit": (
        Reason.CSN,
        "field prim_csn: expected",
        control("commit", prim_csn='"X"'),
    ),
    "csn of a refused": (Reason.CSN, "field csn: expected a CSN", control("refused", csn='"65e0"')),
    "csn of another": (Reason.RID, "field csn: it is of rid 2", change(csn=f'"{OTHER_CSN}"')),
    "prim_csn of another": (
        Reason.RID,
        "prim_csn: it is of",
        change(prim_csn=f'"{OTHER_CSN}"'),
    ),
    "commit of another": (
        Reason.RID,
        "prim_csn: it is of",
        control("commit", prim_csn=f'"{OTHER_CSN}"'),
    ),
    "abort of another": (
        Reason.RID,
        "prim_csn: it is of",
        control("abort", prim_csn=f'"{OTHER_CSN}"'),
    ),
    "own of another": (Reason.RID, "field own: it is of", control("hello", own=f'"{OTHER_CSN}"')),
    "unknown table": (Reason.TABLE, "not in the config", change(table='"Orders"')),
    "table a number": (Reason.TABLE, "not in the config", change(table="5")),
    "unknown column": (Reason.TABLE, '"more"', change(after='{"id":"1","more":1}')),
    "unknown column before": (Reason.TABLE, '"more"', change(before='{"id":"1","more":1}')),
    "column in capitals": (Reason.TABLE, '"QTY"', change(after='{"id":"1","name":"a","QTY":5}')),
    "column twice": (Reason.TABLE, "twice", change(after='{"id":"1","name":"a","qty":5,"qty":5}')),
    "wrong type": (
        Reason.TABLE,
        "column qty of table orders: expected an int32",
        change(after='{"id":"1","name":"a","qty":"5"}'),
    ),
    "wrong type before": (
        Reason.TABLE,
        "expected an int32",
        change(before='{"id":"1","name":"a","qty":"5"}'),
    ),
    "value that was left out": (
        Reason.TABLE,
        "column name of table orders: 1200000 bytes are more than a record may have",
        change(after='{"id":"1","name":{"bytes":"1200000"},"qty":5}'),
    ),
    "row that was left out": (
        Reason.TABLE,
        "a row of table orders: 1200000 bytes are more than a record may have",
        change(after='{"whole row":{"bytes":"1200000"}}'),
    ),
    "nested": (
        Reason.TABLE,
        "column name of table orders: expected a JSON string",
        change(after='{"id":"1","name":{"a":"b"},"qty":5}'),
    ),
    "array": (
        Reason.TABLE,
        "column name of table orders: expected a JSON string",
        change(after='{"id":"1","name":["b"],"qty":5}'),
    ),
    "null in after's key": (
        Reason.TABLE,
        "column id of table orders: expected an int64 as a JSON string, got null",
        change(after='{"id":null,"qty":5}'),
    ),
    "null in before's key": (
        Reason.TABLE,
        "column id of table orders: expected an int64 as a JSON string, got null",
        change(before='{"id":null}'),
    ),
    "key empty": (Reason.KEY, 'must be "id"', change(key="{}")),
    "key a string": (Reason.KEY, "not an object", change(key='"{\\"id\\":\\"1\\"}"')),
    "key an array": (Reason.KEY, "not an object", change(key='["1"]')),
    "key of another column": (Reason.KEY, "must be", change(key='{"qty":5}')),
    "key with another column": (Reason.KEY, "must be", change(key='{"id":"1","qty":5}')),
    "key twice": (Reason.KEY, "must be", change(key='{"id":"1","id":"1"}')),
    "key of null": (
        Reason.KEY,
        "the key's column id of table orders: expected an int64 as a JSON string",
        change(key='{"id":null}', op='"delete"', after=None),
    ),
    "key not canonical": (
        Reason.KEY,
        'expected an int64 as a JSON string, got the string "01"',
        change(key='{"id":"01"}', op='"delete"', after=None),
    ),
    "key of a wrong type": (
        Reason.KEY,
        "the key's column id of table orders: expected an int64 as a JSON string",
        change(key='{"id":1}', op='"delete"', after=None),
    ),
    "key in another order": (Reason.KEY, '"item", "order"', lines('{"order":"1","item":"a"}')),
    "half a key": (Reason.KEY, "must be", lines('{"item":"a"}')),
    "key other than the image's": (
        Reason.KEY,
        'after has "1", key has "2"',
        change(key='{"id":"2"}'),
    ),
    "truncate with a key": (Reason.KEY, "no key", change(op='"truncate"', after=None)),
    "too large": (Reason.SIZE, "1001 bytes, 1000", padded(RECORD_BYTES + 1)),
    "too large a heartbeat": (Reason.SIZE, "", control("heartbeat", more=f'"{"x" * 1000}"')),
    "too large a commit": (Reason.SIZE, "", control("commit", more=f'"{"x" * 1000}"')),
    "commit of session empty": (
        Reason.SESSION,
        "missing: session",
        control("commit", session='""'),
    ),
    "no session": (Reason.SESSION, "missing: session", change(session=None)),
    "session null": (Reason.SESSION, "missing: session", control("heartbeat", session="null")),
    "session empty": (Reason.SESSION, "missing: session", change(session='""')),
    "session a number": (
        Reason.SESSION,
        "field session: expected",
        change(session="5"),
    ),
    "session an object": (
        Reason.SESSION,
        "field session: expected",
        control("hello", session='{"id": 5}'),
    ),
}
"""Name -> its reason, what the detail contains, and the record."""

FIRST: dict[Reason, bytes] = {
    Reason.VERSION: change(v="2", kind='"x"'),
    Reason.KIND: change(epoch=None, csn='"x"'),
    Reason.CSN: change(csn=f'"{OTHER_CSN.upper()}"'),
    Reason.RID: change(csn=f'"{OTHER_CSN}"', table='"x"'),
    Reason.TABLE: change(table='"x"', key='{"x":1}'),
    Reason.KEY: change(key='{"x":1}', more=f'"{"x" * RECORD_BYTES}"'),
    Reason.SIZE: change(session=None, more=f'"{"x" * RECORD_BYTES}"'),
}
"""Records that break the rule and a later one."""

TOKENS = (
    *("null", "true", "false", "0", "-0", "1", "-1", "5.0", "1e2", "0.0", "-0.0", "1.10", "1E5"),
    *("2147483647", "2147483648", "-2147483648", "-2147483649", "2099999999", "2100000000"),
    *("999999999", "-999999999", "9999999999", "1e400", "-1e400", "1e308", "1.8e308", "1e-400"),
    *("123456789012345678901234567890123456789.5", "1" + "0" * 400, "0." + "1" * 100),
    *('"0"', '"-0"', '"1"', '"01"', '"+1"', '"1.0"', '""', '" 1"', '"1 "', '"1\\n"', '"-"'),
    *('"9223372036854775807"', '"9223372036854775808"', '"8999999999999999999"'),
    *('"-9223372036854775808"', '"-9223372036854775809"', '"-9000000000000000000"', '"1e5"'),
    *('"NaN"', '"Infinity"', '"-Infinity"', '"nan"', '"+Infinity"', '"1.50"', '"-1.5"', '".5"'),
    *('"1."', '"00.5"', '"-0.0"', '"1,5"', '"1234567890123456789012345678901234567890.5"'),
    *('"a"', '"é"', '"\\u00e9"', '"\\u001f"', '"\\u0000"', '"\\n"', '"\\/"', '"\\\\"', '"\\""'),
    *('"😀"', '"\\ud83d\\ude00"', '"\\ud83d"', '"\\ude00"', '"\\ude00\\ud83d"', '"\\\\ud83d"'),
    *('"\\ud83dx\\ude00"', '"{}"', '"a,b:c"', '"ÿ\u2028"', '"true"', '"null"'),
    *('"AA=="', '"AB=="', '"AAA="', '"AAB="', '"AAAA"', '"A"', '"AAA"', '"AA==AAAA"', '"AA-_"'),
    *('"2024-02-29T23:59:59.000001Z"', '"2023-02-29T00:00:00.000000Z"'),
    *('"1900-02-29T00:00:00.000000Z"', '"2000-02-29T00:00:00.000000Z"'),
    *('"2024-04-31T00:00:00.000000Z"', '"2024-04-30T00:00:00.000000Z"'),
    *('"2024-12-31T24:00:00.000000Z"', '"2024-12-31T23:60:00.000000Z"'),
    *('"2024-12-31T23:59:60.000000Z"', '"2024-13-01T00:00:00.000000Z"'),
    *('"2024-00-10T00:00:00.000000Z"', '"2024-01-00T00:00:00.000000Z"'),
    *('"0000-01-01T00:00:00.000000Z"', '"0001-01-01T00:00:00.000000Z"'),
    *('"9999-12-31T23:59:59.999999Z"', '"10000-01-01T00:00:00.000000Z"'),
    *('"2024-02-29T23:59:59Z"', '"2024-02-29T23:59:59.000001+00:00"'),
    *('"2024-02-29 23:59:59.000001Z"', '"2024-02-29T23:59:59.000001z"', '"2024-02-29"'),
    *("{}", "[]", '{"a":1}', "[1]"),
)
"""JSON values around the edges of every type."""

NO_OBJECT: dict[str, bytes] = {
    "nothing": b"",
    "blank": b" \n",
    "null": b"null",
    "number": b"5",
    "string": b'"{}"',
    "array": b"[]",
    "array of an object": b'[{"v":1}]',
    "cut off": b'{"v":1,"kind":"change"',
    "cut off in a string": b'{"v":1,"kind":"chan',
    "cut off in an object": b'{"v":1,"after":{"a":1}',
    "garbage after": b'{"v":1} x',
    "brace after": b'{"v":1}}',
    "object after": b'{"v":1}{"v":2}',
    "object after a comma": b'{"v":1},{"v":2}',
    "bracket after": b'{"v":1}]',
    "NUL after": b'{"v":1}\x00',
    "garbage before": b'x{"v":1}',
    "byte order mark": b'\xef\xbb\xbf{"v":1}',
    "not UTF-8": b'{"v":1,"kind":"\xff"}',
    "UTF-16": '{"v":1}'.encode("utf-16"),
    "half a surrogate pair in UTF-8": b'{"v":1,"kind":"\xed\xa0\xbd"}',
    "single quotes": b"{'v':1}",
    "no quotes": b"{v:1}",
    "comma after the last": b'{"v":1,}',
    "no comma": b'{"v":1 "kind":"change"}',
    "comment": b'{"v":1/*one*/}',
    "NaN": b'{"v":1,"epoch":NaN}',
    "NaN in an object": b'{"v":1,"after":{"a":NaN}}',
    "NaN in an unknown field": b'{"v":1,"more":[{"a":NaN}]}',
    "leading zero": b'{"v":01}',
    "line break in a string": b'{"v":1,"kind":"a\nb"}',
    "a field that ends as the parser expects": b'{"v":1,"":1}x',
    "wrong type, then cut off": b'{"epoch":"x"',
    "wrong type, then garbage": b'{"epoch":"x"}}',
}
"""What is not one JSON object in UTF-8."""
