"""A case that knows what was read of it: what nobody reads is no input, and no expectation."""

from collections.abc import Iterator
from typing import Any

REMARKS = {
    *("about", "basis", "description", "id", "kind", "note", "notes", "place", "source"),
    *("source_file", "title"),
}
"""What a case says to people; deeper down such a name is an input like any other."""


class Read(dict[str, Any]):
    """An object of a case, whose members count as read once somebody asks for them."""

    def __init__(self, members: dict[str, Any]) -> None:
        super().__init__({name: reading(value) for name, value in members.items()})
        self.was_read = set[str]()

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401
        self.was_read.add(name)
        return super().__getitem__(name)

    def __iter__(self) -> Iterator[str]:
        """The names; a copy of the object asks for each member then, and does not pass by here."""
        return super().__iter__()

    def get(self, name: str, default: Any = None) -> Any:  # noqa: ANN401
        """The member, or the default."""
        self.was_read.add(name)
        return super().get(name, default)

    def items(self) -> Any:  # noqa: ANN401
        """All members."""
        self.was_read.update(self)
        return super().items()

    def values(self) -> Any:  # noqa: ANN401
        """All members, without their names."""
        self.was_read.update(self)
        return super().values()


def reading(value: Any) -> Any:  # noqa: ANN401
    """The same value, its objects as ones that know what was read of them."""
    if isinstance(value, dict):
        return Read(value)
    return [reading(one) for one in value] if isinstance(value, list) else value


def unread(value: object, path: str = "") -> Iterator[str]:
    """The paths of what nobody has read, remarks aside: names, and [] for the places of a list."""
    if isinstance(value, list):
        for one in value:
            yield from unread(one, f"{path}[]")
    if isinstance(value, Read):
        for name in value.keys() - (set[str]() if path else REMARKS):
            inner = f"{path}.{name}" if path else name
            if name in value.was_read:
                yield from unread(dict.__getitem__(value, name), inner)
            else:
                yield inner
