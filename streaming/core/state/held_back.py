"""What an agreement is not sent yet although it is committed, between two batches."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HeldBack:
    """The hub epochs behind `after` that wait because of when their agreement sends.

    `since_ms`: when the first of them was committed, by the hub's clock; 0: not known, so they have
    to be looked at. `released`: up to this hub epoch an operator lets them go at once. `copies`: he
    let a copy begin, which is not done.
    """

    after: int
    since_ms: int
    released: int = 0
    copies: bool = False
