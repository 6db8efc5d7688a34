"""How much was sent of each agreement lately, and until when it sends nothing because of that."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Throttle:
    """Until when each agreement with a limit of bytes a second sends nothing, by the hub's clock.

    What is sent is not cut: a page of a consumer that is behind goes as a whole, and then nothing
    for as long as it takes at that rate. So it holds on average.
    """

    until_ms: dict[str, int] = field(default_factory=dict)

    def note(self, agreement: str, size: int, bytes_per_s: int, at_ms: int) -> None:
        """Note that so many bytes were sent by a batch at this time; `bytes_per_s` 0: no limit."""
        if bytes_per_s:
            begins_ms = max(at_ms, self.until_ms.get(agreement, 0))
            self.until_ms[agreement] = begins_ms + size * 1_000 // bytes_per_s

    def held(self, at_ms: int) -> tuple[str, ...]:
        """The agreements that send nothing at this time."""
        return tuple(sorted(name for name in self.until_ms if self.holds(name, at_ms)))

    def holds(self, agreement: str, at_ms: int) -> bool:
        """Return whether this agreement sends nothing at this time."""
        return at_ms < self.until_ms.get(agreement, 0)
