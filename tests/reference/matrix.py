"""What the rows of the matrix come to once something is sent.

The hub derives a row from a hub epoch (`AgreementState.estimated`); this is the rule of document
003 by itself, which the vectors and the properties of `lacking` are held against.
"""

from collections.abc import Mapping

from streaming.core.matrix.rows import NumberRange, Origin


def raised(row: Mapping[Origin, int], sent: Mapping[Origin, NumberRange]) -> dict[Origin, int]:
    """The row of a replica once these were sent to it: success is assumed."""
    return {**row, **{origin: numbers.last for origin, numbers in sent.items()}}


def changes(numbers: NumberRange) -> int:
    """How many changes have these numbers."""
    return numbers.last - numbers.first + 1
