"""What is wrong with a configuration, a line for each mistake: field, value, what to do."""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from streaming.config.comparison import INVALID_DSN
from streaming.config.config import ENV_DELIMITER, ENV_PREFIX, Config
from streaming.core.access.secret_names import is_secret, without_login
from streaming.core.model.errors import ConfigError

_WORDING = {
    "input should be": "should be",
    "valid tuple": "list",
    "a valid dictionary": "a table",
    "string should match pattern": "should match",
}


def explain(error: ValidationError, environment: Iterable[str]) -> list[str]:
    """The mistakes as lines; a value that may hold a secret is not shown."""
    variables = {name.upper() for name in environment}
    return [
        f"{line}{_source(details['loc'], variables)}"
        for details in error.errors()
        for line in _lines(details)
    ]


def check(faults: Iterable[str]) -> None:
    """ConfigError with a line for each fault; none: the configuration can be used."""
    if found := list(faults):
        raise ConfigError("\n".join(found))


def section(model: type[BaseModel], field: str) -> type[BaseModel] | None:
    """The fields of a section; of a list's section, those of one entry; None: a plain value."""
    if field not in model.model_fields:
        return None
    annotation = model.model_fields[field].annotation
    for kind in (annotation, *get_args(annotation)):
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return kind
    return None


def _lines(details: ErrorDetails) -> Iterator[str]:
    location, message = details["loc"], _reworded(details["msg"])
    path = _path_text(location)
    match details["type"]:
        case "parts":
            about = f"{path}: " if path else ""
            yield from (f"{about}{line}" for line in details["msg"].splitlines())
        case "missing":
            yield f"{path} is missing: add it"
        case "extra_forbidden":
            yield f"{path} is not a field: {_hint(location)}"
        case _ if _shown(path, details):
            yield f"{path} = {_safe(details['input'])!r:.80}: {message}"
        case _:
            yield f"{path}: {message}"


def _reworded(message: str) -> str:
    text = message[:1].lower() + message[1:]
    for theirs, ours in _WORDING.items():
        text = text.replace(theirs, ours)
    return text.partition(" or instance of ")[0]


def _shown(path: str, details: ErrorDetails) -> bool:
    """Return whether the value may be shown: a single value that is no secret."""
    is_value = isinstance(details["input"], str | int | float)
    is_hidden = path == "kafka.options" or details["type"] == INVALID_DSN or is_secret(path)
    return is_value and "." in path and not is_hidden


def _safe(value: object) -> object:
    """The value without the login of an address."""
    return without_login(value) if isinstance(value, str) else value


def _path_text(location: tuple[int | str, ...]) -> str:
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return "".join(parts).removeprefix(".")


def _source(location: tuple[int | str, ...], variables: set[str]) -> str:
    name = ENV_PREFIX + ENV_DELIMITER.join(map(str, location)).upper()
    return f" (from {name})" if name in variables else ""


def _hint(location: tuple[int | str, ...]) -> str:
    model: type[BaseModel] = Config
    for part in location[:-1]:
        if isinstance(part, str):
            model = section(model, part) or model
    known = list(model.model_fields)
    close = get_close_matches(str(location[-1]), known, n=1)
    return f"did you mean {close[0]}?" if close else f"the fields are {', '.join(known)}"
