"""In which order the eligible transactions of a batch are judged."""

from enum import StrEnum


class JudgingOrder(StrEnum):
    """What transactions are ordered by; inside, their changes are in CSN order."""

    LARGEST_CSN = "largest_csn"
    """their largest CSN: the protocol's order, which keeps each row's local order"""
    PRIMARY_CSN = "primary_csn"
    """their first CSN: by the beginning of a transaction; only to ask what it would have done"""
    ARRIVAL = "arrival"
    """the time of their last change's record in Kafka; only to ask what it would have done"""
