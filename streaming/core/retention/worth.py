"""Whether a purge that takes nothing of the changelog is worth the batch that it needs."""

BATCHES_MIN = 100
"""A hub at work waits until it purges so many batches; another batch soon adds to them."""

BATCHES_AT_REST = 2
"""One batch is the last purge's own: to purge that alone would go on for ever."""


def is_worth_batch(batches: int, *, at_rest: bool, notes_rows: bool) -> bool:
    """Return whether a batch is planned to purge so many batches before the oldest that is kept.

    `at_rest`: the hub had no batch for as long as history is kept, so none is to be expected.
    `notes_rows`: the batch would be the first to say up to where `rows` has come. What `rows` has
    is purged once a commit says so, and at a hub at rest no other batch does.
    """
    if batches >= BATCHES_MIN:
        return True
    return at_rest and (batches >= BATCHES_AT_REST or notes_rows)
