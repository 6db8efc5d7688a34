"""Whether the hub vouches for the rows that a range hides: they are no loss where they are deleted.

See docs/protocol.md, Pages and ranges.
"""

from streaming.core.state.replica_state import ReplicaState


def is_vouched(consumer: ReplicaState, covers: int) -> bool:
    """Return whether what the consumer has in a range is the hub's, as far as the hub knows.

    `covers`: what the consumer had before the resync. It is so if the consumer has applied
    something of this generation, and neither its database nor its topic lost anything since.
    Otherwise it may have rows that nobody else has: from before a state that was restored, from
    input that was lost, from a database that was no replica.
    """
    return covers > 0 and all(floor.hub_epoch <= covers for floor in consumer.floors)
