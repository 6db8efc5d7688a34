"""What a slot has of the log, read by SQL."""

import psycopg

QUERY = """SELECT data FROM pg_logical_slot_get_binary_changes(%s, NULL, NULL,
    'proto_version', '1', 'publication_names', 'p', 'messages', 'true')"""


def read_log(client: "psycopg.Connection[tuple[object, ...]]", slot: str) -> list[bytes]:
    """The messages of publication `p` that nobody has read yet."""
    return [bytes(row[0]) for row in client.execute(QUERY, (slot,))]  # type: ignore[call-overload]
