"""Over the file's values secret files, over both the environment: SLACKWATER_<SECTION>__<FIELD>."""

from pathlib import Path

from pydantic_settings import (
    BaseSettings,
    NestedSecretsSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from streaming.config.config import ENV_DELIMITER, ENV_PREFIX, Config
from streaming.config.sources.secret_files import secrets_folder
from streaming.core.text.edited_text import edited_text


class _SecretFiles(NestedSecretsSettingsSource):
    """Secret files, each read as a file that people edit."""

    @classmethod
    def load_secrets(cls, path: Path) -> dict[str, str]:
        """The text of each file, by its name; ConfigError: it is not UTF-8."""
        return {
            str(file.relative_to(path)): edited_text(file.read_bytes(), str(file)).strip()
            for file in cls._iter_secret_files(path)
        }


class FileAndEnvironment(Config, BaseSettings):
    """The configuration as it comes from the file, with what overrides it."""

    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", env_prefix=ENV_PREFIX, env_nested_delimiter=ENV_DELIMITER
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003  # the interface's
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """First the environment, then secret files, then the file; nothing else."""
        secrets = _SecretFiles(file_secret_settings, secrets_dir=secrets_folder())
        return env_settings, secrets, init_settings
