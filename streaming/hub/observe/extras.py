"""Modules that need packages of an extra of ours; imported when the configuration asks for them."""

from importlib import import_module
from types import ModuleType

from streaming.core.model.errors import ConfigError


def of_extra(module: str, setting: str, extra: str) -> ModuleType:
    """The module; ConfigError, which names the setting, if a package of the extra is missing."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ConfigError(
            f"{setting} is set, but the package {error.name} is not installed: "
            f"pip install 'slackwater[{extra}]', or remove the setting"
        ) from None
