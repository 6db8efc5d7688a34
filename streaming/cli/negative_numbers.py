"""Commands that take a negative number as an argument, such as a key, and not as an option."""

import re
from typing import Any

from typer.core import TyperCommand

_NEGATIVE = re.compile(r"-\d+(\.\d+)?")


class NumbersCommand(TyperCommand):
    """A command without options that are numbers."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401  # typer's own
        """Negative numbers behind `--`, except the values of options."""
        if "--" in args:
            return super().parse_args(ctx, args)
        valued = {
            name for one in self.params if not getattr(one, "is_flag", False) for name in one.opts
        }
        before = ["", *args]
        numbers = [
            place
            for place, one in enumerate(args)
            if _NEGATIVE.fullmatch(one) and before[place] not in valued
        ]
        if not numbers:
            return super().parse_args(ctx, args)
        others = [one for place, one in enumerate(args) if place not in numbers]
        return super().parse_args(ctx, [*others, "--", *(args[place] for place in numbers)])
