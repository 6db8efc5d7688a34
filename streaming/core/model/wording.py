"""Ages and counts as words."""


def as_age(seconds: float) -> str:
    """How long ago, in the two largest units; the future counts as now."""
    whole = max(0, int(seconds))
    for unit_s, unit, part_s, part in (
        (86_400, "d", 3_600, "h"),
        (3_600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if whole >= unit_s:
            return f"{whole // unit_s} {unit} {whole % unit_s // part_s} {part} ago"
    return f"{whole} s ago"


def as_count(count: int, noun: str, plural: str = "") -> str:
    """A count with its noun: 1 table, 2 tables; `plural` for one that does not end in s."""
    return f"{count} {noun if count == 1 else plural or f'{noun}s'}"
