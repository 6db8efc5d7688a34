"""Texts that stand in a file where a number is due: "20" for 20.

The environment has texts only, so there each is read as what its field needs.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from streaming.config.errors import section


def text_numbers(model: type[BaseModel], data: Mapping[str, Any], place: str = "") -> Iterator[str]:
    """A sentence for each; `data`: of this model as TOML has it, whatever is wrong with it."""
    for name, value in data.items():
        field, inner = model.model_fields.get(name), section(model, name)
        if inner is not None:
            yield from _within(inner, value, f"{place}{name}")
        elif field is not None and isinstance(value, str) and _is_due(field, value):
            yield f"{place}{name} = {value!r:.80}: give a number, without quotes"


def _within(model: type[BaseModel], value: object, place: str) -> Iterator[str]:
    """Those of a section, or of each entry of a list of sections."""
    if isinstance(value, Mapping):
        yield from text_numbers(model, value, f"{place}.")
    for index, one in enumerate(value if isinstance(value, list) else ()):
        yield from _within(model, one, f"{place}[{index}]")


def _is_due(field: FieldInfo, text: str) -> bool:
    """Return whether a number is due in place of this text; one that is none is refused anyway."""
    kinds = {*_kinds(field.annotation)}
    if not kinds & {int, float} or kinds & {str, text}:
        return False
    try:
        float(text)
    except ValueError:
        return False
    return True


def _kinds(annotation: Any) -> Iterator[object]:  # noqa: ANN401  # whatever a type may be
    """The types of a union, and the values of a Literal."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        yield from _kinds(inner[0])
    elif origin is Literal:
        yield from inner
    elif inner and origin not in (tuple, list, dict):
        for one in inner:
            yield from _kinds(one)
    else:
        yield annotation
