"""What is set otherwise for a what-if: conflict functions of tables, and the order of judging."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pydantic import ValidationError

from streaming.config.config import Config
from streaming.config.errors import check, explain
from streaming.config.functions import unlisted
from streaming.core.model.errors import ConfigError
from streaming.core.state.topology import JudgingOrder

FUNCTION = ".function"
ORDER = "order"
FORM = "write TABLE.function=FUNCTION, or order=ORDER"


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Settings that replace those of then; `functions`: table -> its conflict function."""

    functions: Mapping[str, str] = field(default_factory=dict)
    order: JudgingOrder = JudgingOrder.LARGEST_CSN

    @property
    def is_something(self) -> bool:
        """Return whether anything is set otherwise."""
        return self != NO_CHANGE

    def config(self, config: Config) -> Config:
        """The configuration with these functions; ConfigError if one cannot be used."""
        if not self.functions:
            return config
        document = json.loads(config.document())
        for table in document["tables"]:
            table["function"] = self.functions.get(table["name"], table["function"])
        try:
            return Config.from_document(json.dumps(document))
        except ValidationError as error:
            raise ConfigError("\n".join(explain(error, ()))) from None

    def check(self, config: Config) -> None:
        """ConfigError if a table is not configured, or its function cannot be used."""
        known = [table.name for table in config.tables]
        for name in self.functions:
            if name not in known:
                raise ConfigError(
                    f"--set {name}{FUNCTION}: there is no table {name!r}: use one of"
                    f" {', '.join(known)}"
                )
        tables = self.config(config).table_map().values()
        check(unlisted(tables, config.functions.modules))

    def texts(self) -> list[str]:
        """What is set, as it is written on the command line."""
        functions = [f"{name}{FUNCTION}={text}" for name, text in self.functions.items()]
        is_other = self.order is not JudgingOrder.LARGEST_CSN
        return [*functions, *([f"{ORDER}={self.order}"] if is_other else [])]


NO_CHANGE = WhatIf()


def parse_what_if(settings: Iterable[str]) -> WhatIf:
    """Parse settings as `TABLE.function=FUNCTION` and `order=ORDER`; ConfigError for others."""
    functions, order = dict[str, str](), JudgingOrder.LARGEST_CSN
    for text in settings:
        name, is_set, value = text.partition("=")
        if name == ORDER and is_set:
            order = _order(value)
        elif name.endswith(FUNCTION) and len(name) > len(FUNCTION) and value:
            functions[name.removesuffix(FUNCTION)] = value
        else:
            raise ConfigError(f"--set {text}: {FORM}")
    return WhatIf(functions, order)


def _order(text: str) -> JudgingOrder:
    if text not in list(JudgingOrder):
        raise ConfigError(f"--set {ORDER}={text}: use one of {', '.join(JudgingOrder)}")
    return JudgingOrder(text)
