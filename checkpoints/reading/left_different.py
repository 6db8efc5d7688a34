"""SQL of the records in quarantine whose row nothing has set right at its origin since.

`t` is `quarantine`, `c` the changelog, and of TAKEN_HELLOS `t` is `events`.
"""

UNNAMED = """
    SELECT rid, reason, batch, kind, count(*) AS count, min(id) AS id, min("time") AS since
    FROM ({kept}) AS k WHERE coalesce(k."table", '') = '' AND ({still})
    GROUP BY rid, reason, batch, kind{each} ORDER BY batch, rid, id
"""
"""The kept records that name no table, counted; `each`: ", id" for one by one."""

NOT_SET_RIGHT = """
    SELECT k.* FROM (SELECT * FROM ({kept}) WHERE coalesce("table", '') <> '') AS k
    LEFT ANTI JOIN (
        SELECT * FROM c WHERE c.batch BETWEEN {since} AND {batch}
            AND (c.kind = 'refresh' OR c.verdict IN ('accepted', 'adopted'))
    ) AS c ON c."table" = k."table" AND c.key = k.key AND c.batch >= k.batch AND (
        (c.kind = 'refresh' AND c."to" = k.rid)
        OR (c.kind = 'change' AND {is_later})
        OR (c.kind = 'change' AND c.rid <> k.rid AND c.verdict = 'accepted' AND ({receives}))
    )
    LEFT ANTI JOIN (
        SELECT c.* FROM c WHERE c.batch BETWEEN {since} AND {batch}
            AND c.op = 'truncate' AND c.verdict = 'accepted'
    ) AS c ON c."table" = k."table" AND c.batch >= k.batch AND (
        ({is_later}) OR (c.rid <> k.rid AND ({receives}))
    )
"""
"""The kept records whose row was neither sent to the origin nor written by it since."""

IS_LATER = """c.rid = k.rid AND c."offset" > k."offset"
    AND (k.csn IS NULL OR c.csn > k.csn)"""
"""The origin wrote it later: behind it in its topic, and above it."""

WRITTEN_SINCE = """
    WITH k AS ({kept}), written AS (
        SELECT rid, batch, "offset", csn, "table", key, op FROM c
        WHERE c.batch <= {batch} AND c.kind = 'change' AND c.verdict IN ('accepted', 'adopted')
    )
    SELECT k.id FROM k JOIN written AS c ON c."table" = k."table" AND c.key = k.key
        WHERE {is_newer}
    UNION
    SELECT k.id FROM k JOIN written AS c ON c."table" = k."table" AND c.op = 'truncate'
        WHERE {is_newer}
"""
"""The records whose row holds a newer write."""

IS_NEWER = """
    c.batch > k.batch OR (c.batch = k.batch AND c.rid = k.rid AND c."offset" > k."offset")
        OR (k.reason <> 'skew' AND c.csn > k.csn)
"""
"""A write came later, or has a larger CSN."""

NOT_JUDGED = """
    LEFT ANTI JOIN (
        SELECT * FROM c
        WHERE c.batch <= {batch} AND c.kind = 'change' AND c.verdict <> 'quarantined'
    ) AS j ON j.csn = k.csn AND j.rid = k.rid AND k.reason = 'session'
"""
"""Behind that, where one is kept as `session`: not the changes that came in another record too."""

NEWEST_OF_EACH_ROW = """
    SELECT * FROM (
        SELECT *, row_number() OVER (
                PARTITION BY rid, "table", key, CASE WHEN key IS NULL THEN id END
                ORDER BY batch DESC, "offset" DESC
            ) AS n, min("time") OVER (
                PARTITION BY rid, "table", key, CASE WHEN key IS NULL THEN id END
            ) AS since
        FROM ({left})
    ) WHERE n = 1 ORDER BY batch, rid, "offset"
"""
"""Of several records of a row the newest; without a key each record is a row of its own."""

FIRST_KEPT = """
    SELECT min(batch) AS batch, max(reason = 'session') AS has_session
    FROM ({kept})
"""
"""The batch of the oldest record that is kept: what was before it sets nothing right."""

TAKEN_HELLOS = """
    SELECT rid, batch, "offset", value FROM t
    WHERE batch BETWEEN {since} AND {batch} AND kind = 'hello' AND outcome = 'taken'
"""
"""The hellos since then; one may say that its database was emptied, or was restored."""
