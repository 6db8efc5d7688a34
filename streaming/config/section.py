"""What every section of the configuration is made of: its types, and what it refuses."""

import re
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal, LiteralString

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from streaming.config.options import masked_values
from streaming.core.access.root import BucketRoot, StateRoot, parse_root

Name = Annotated[str, Field(pattern="^[a-z0-9_-]+$", max_length=100)]
Identifier = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]+$")]
Positive = Annotated[int, Field(gt=0)]
NonNegative = Annotated[int, Field(ge=0)]


def _number_or_auto(value: object, validate: ValidatorFunctionWrapHandler) -> object:
    try:
        return validate(value)
    except ValidationError:  # one line, in place of one for each member of the union
        raise PydanticCustomError("number", 'give a number from 0 on, or "auto"') from None


NumberOrAuto = Annotated[NonNegative | Literal["auto"], WrapValidator(_number_or_auto)]


def _like(pattern: str, advice: LiteralString) -> AfterValidator:
    """A text of this form; otherwise the advice is what its user reads."""

    def check(value: str) -> str:
        if not re.match(pattern, value):
            raise PydanticCustomError("url", advice)
        return value

    return AfterValidator(check)


Url = Annotated[
    str,
    _like(
        r"^https?://(?![^\s/@\[]*:(?!\d*/)\S*@)[^\s/@]+(/\S*)?$",
        "give an address with its scheme, as http://host:4318, without a password",
    ),
]
Endpoint = Annotated[
    str,
    _like(
        r"^https?://[^\s/@]+$",
        "give an address with its scheme and without a path, as https://host:9000; no password",
    ),
]


def _place(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        root = parse_root(value)
    except ValueError as error:
        raise PydanticCustomError("place", str(error)) from None
    return root if isinstance(root, BucketRoot) else value


Place = Annotated[StateRoot, BeforeValidator(_place), PlainSerializer(str)]


class Section(BaseModel):
    """A part of the configuration; it cannot be changed once it is read."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    later: ClassVar[tuple[str, ...]] = ()
    """Fields of a later version, refused with a message of their own."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_later_fields(cls, data: object) -> object:
        for name in cls.later:
            if isinstance(data, dict) and name in data:
                raise PydanticCustomError(
                    "later",
                    "'{name}' is not supported by this version yet: remove it",
                    {"name": name},
                )
        return data


class SectionWithSecret(Section):
    """A part of which a value is never shown."""

    @property
    def options(self) -> dict[str, str]:
        """What is set of it, by name."""
        return {name: text for name, text in self.model_dump().items() if text is not None}

    def __repr_args__(self) -> Iterator[tuple[str, Any]]:
        yield from masked_values(self.model_dump()).items()
