"""The environment's values over those of the file: SLACKWATER_<SECTION>__<FIELD>."""

from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from streaming.config.config import ENV_DELIMITER, ENV_PREFIX, Config


class FileAndEnvironment(Config, BaseSettings):
    """The configuration as it comes from the file, with the environment's values over it."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        env_prefix=ENV_PREFIX,
        env_nested_delimiter=ENV_DELIMITER,
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003  # the interface's
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """First the environment, then the file; nothing else."""
        return env_settings, init_settings
