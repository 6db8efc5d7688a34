"""What a conflict function of yours imports: `from streaming.functions import Winner`.

A function is named by its import path in the configuration (`function = "shop.rules:newest"`,
docs/conflicts.md). It is called as `function(row, change, facts)`, with a ConflictFacts and two
images, of which one is None where the row is deleted. It returns a Winner, or a whole image as the
row that both become.
"""

from streaming.core.conflict.winner import ConflictFacts, Image, UserFunction, Winner

__all__ = ["ConflictFacts", "Image", "UserFunction", "Winner"]
