"""How the agent connects: both its connections read text in one form, and have one name."""

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from connectors.postgres.values.text import TEXT_SETTINGS

APPLICATION = "slackwater"
"""The name of its connections in pg_stat_activity."""


def agent_conninfo(dsn: str, **more: str) -> str:
    """The connection string, with the agent's text settings behind its own options."""
    given = conninfo_to_dict(dsn)
    settings = [f"-c {name}={value}" for name, value in TEXT_SETTINGS.items()]
    options = " ".join([*filter(None, [str(given.get("options") or "")]), *settings])
    return make_conninfo(dsn, options=options, application_name=APPLICATION, **more)
