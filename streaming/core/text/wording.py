"""Ages, counts and sizes as words."""


def as_age(seconds: float) -> str:
    """How long ago, in the two largest units; the future counts as now."""
    return f"{as_duration(seconds)} ago"


def as_duration(seconds: float) -> str:
    """How long, in the two largest units; less than nothing counts as nothing."""
    whole = max(0, int(seconds))
    for unit_s, unit, part_s, part in (
        (86_400, "d", 3_600, "h"),
        (3_600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if whole >= unit_s:
            return f"{whole // unit_s} {unit} {whole % unit_s // part_s} {part}"
    return f"{whole} s"


def as_count(count: int, noun: str, plural: str = "") -> str:
    """A count with its noun: 1 table, 2 tables; `plural` for one that does not end in s."""
    return f"{count} {noun if count == 1 else plural or f'{noun}s'}"


def as_range(first: int, last: int) -> str:
    """Consecutive numbers, both ends included, as a cell has them: 5-9, and 5 for one of them."""
    return str(first) if first == last else f"{first}-{last}"


def as_numbered(noun: str, first: int, last: int) -> str:
    """A noun with consecutive numbers, both ends included: places 5 to 9, and place 5 for one."""
    return f"{noun} {first}" if first == last else f"{noun}s {first} to {last}"


def as_bytes(count: int) -> str:
    """A size in the largest unit that it fills, with three digits: 13501 is 13.2 kB of 1024."""
    if count < 1024:
        return as_count(count, "byte")
    power = min((count.bit_length() - 1) // 10, len(_UNITS))
    size = count / 1024**power
    return f"{size:.{2 if size < 10 else 1 if size < 100 else 0}f} {_UNITS[power - 1]}"


_UNITS = ("kB", "MB", "GB", "TB", "PB")


def as_percent(hundredths: int) -> str:
    """A share, given in hundredths of a percent: 3333 is 33.33%, and all of it is 100%."""
    return "100%" if hundredths == 10_000 else f"{hundredths // 100}.{hundredths % 100:02}%"
