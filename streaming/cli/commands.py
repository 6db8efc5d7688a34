"""All commands, each with its place and its first sentence, and what they are for."""

from streaming.cli.lazy import CommandPlace

COMMANDS = (
    CommandPlace(
        "setup",
        "streaming.cli.start.setup:setup",
        "Fetch the jars of Spark and Kafka into the cache; afterwards nothing is downloaded.",
    ),
    CommandPlace(
        "demo",
        "streaming.cli.start.run:demo",
        "Run three replicas that conflict and one hub: exit 0 if all checks of the result pass.",
    ),
    CommandPlace(
        "run",
        "streaming.cli.start.run:run",
        "Run the hub until SIGTERM or Ctrl-C; it stops after a complete batch.",
    ),
    CommandPlace(
        "reinit",
        "streaming.cli.repair.reinit:reinit",
        "Empty the database of a replica whose agent is stopped; started, it gets everything anew.",
    ),
    CommandPlace(
        "recover",
        "streaming.cli.repair.recover:recover",
        "Give up the lost input of a replica, or go on from a state that was restored by hand.",
    ),
    CommandPlace(
        "resume",
        "streaming.cli.order.pause:resume",
        "Send to an agreement again that stopped at a refused row: first what was refused.",
    ),
    CommandPlace(
        "resync",
        "streaming.cli.order.resync:resync",
        "Bring a consumer what it lacks, each row once as it stands; or show what is under way.",
    ),
    CommandPlace(
        "pause",
        "streaming.cli.order.pause:pause",
        "Send nothing more to a consumer; what it writes still reaches the others.",
    ),
    CommandPlace(
        "init",
        "streaming.cli.order.init:init",
        "Fill a new, empty replica with every row as it stands, once its agent is started.",
    ),
    CommandPlace(
        "retire",
        "streaming.cli.order.retire:retire",
        "Take a replica out for good: what the hub has of it reaches all others, the rest is gone.",
    ),
    CommandPlace(
        "backup",
        "streaming.cli.order.backup:backup",
        "Copy the state as its last commit left it; the hub may go on working.",
    ),
    CommandPlace(
        "restore",
        "streaming.cli.order.backup:restore",
        "Make the hub's state of a backup; the hub must not run, and its state be away.",
    ),
    CommandPlace(
        "status",
        "streaming.cli.look.status:status",
        "Show the state of the hub, what needs a person first; exit 1 if something does.",
        without_numpy=True,
    ),
    CommandPlace(
        "top",
        "streaming.cli.look.top:top",
        "Show the state of the hub on the whole screen until Ctrl-C; into a pipe only once.",
    ),
    CommandPlace(
        "doctor",
        "streaming.cli.start.doctor:doctor",
        "Check Java, configuration, state, disk, clocks, broker and topics; exit 1 if one is wrong.",
    ),
    CommandPlace(
        "acls",
        "streaming.cli.start.acls:acls",
        "Print the rights in Kafka that the hub, each agent and those who ask need.",
    ),
    CommandPlace(
        "schema",
        "streaming.cli.look.schema:schema",
        "Compare the schemas of all replicas with each other and with the configuration.",
    ),
    CommandPlace(
        "level",
        "streaming.cli.look.level:level",
        "Exit 0 when every consumer has everything that the hub and its topics have.",
    ),
    CommandPlace(
        "abort",
        "streaming.cli.order.abort:abort",
        "End an open transaction; its rows are refreshed at its origin.",
    ),
    CommandPlace(
        "replay",
        "streaming.cli.past.replay:replay",
        "Judge the past again, and compare with what the hub recorded.",
    ),
    CommandPlace(
        "rows",
        "streaming.cli.past.rows:rows",
        "Show the rows of a table, as they stand or as they stood at a moment.",
    ),
    CommandPlace(
        "diff",
        "streaming.cli.past.rows:diff",
        "Show which rows stand otherwise at a later moment, column by column.",
    ),
    CommandPlace(
        "blame", "streaming.cli.past.rows:blame", "Show by column who wrote what stands in a row."
    ),
    CommandPlace(
        "explain",
        "streaming.cli.look.explain:explain",
        "Show why a change won or lost: what came when, what it met, and what it caused.",
    ),
    CommandPlace(
        "verify",
        "streaming.cli.past.verify:verify",
        "Audit what the hub recorded; a running hub is not disturbed.",
    ),
    CommandPlace(
        "sql",
        "streaming.cli.past.sql:sql",
        "Query all tables by SQL, as they stand or as they stood at a moment.",
    ),
    CommandPlace(
        "export",
        "streaming.cli.past.export:export",
        "Write all tables into a new SQLite file, as they stand or as they stood at a moment.",
    ),
    CommandPlace(
        "pin",
        "streaming.cli.order.pin:pin",
        "Keep the state of a hub epoch readable until `slackwater unpin`.",
    ),
    CommandPlace(
        "unpin",
        "streaming.cli.order.pin:unpin",
        "Release a pinned hub epoch: what only it needs is removed as the replay window says.",
    ),
    CommandPlace(
        "pins",
        "streaming.cli.order.pin:pins",
        "List the pins, each with the bytes of files that are kept for readers of the past alone.",
    ),
    CommandPlace(
        "ruv",
        "streaming.cli.look.positions:ruv",
        "Show the hub's RUV of each data set in the text form of 389 Directory Server.",
    ),
    CommandPlace(
        "lacks",
        "streaming.cli.look.positions:lacks",
        "Show what a consumer lacks by its last acknowledgement, and where sending starts.",
    ),
    CommandPlace(
        "agent",
        "streaming.cli.start.agent:app",
        "Run the agent of one replica until SIGTERM or Ctrl-C.",
    ),
    CommandPlace(
        "conflicts", "streaming.cli.look.conflicts:app", "Changes that lost, and refused rows."
    ),
    CommandPlace(
        "quarantine", "streaming.cli.repair.quarantine:app", "Records the hub could not process."
    ),
    CommandPlace("config", "streaming.cli.start.config:app", "The configuration."),
    CommandPlace("services", "streaming.cli.start.services:app", "An embedded Kafka broker."),
)

PURPOSES = {
    "First": (
        *("demo", "services", "config", "run", "agent"),
        *("level", "status", "doctor", "conflicts", "explain"),
    ),
    "Look": ("top", "schema", "ruv", "lacks", "verify"),
    "Order": ("init", "pause", "resync", "resume", "abort", "retire"),
    "Repair": ("quarantine", "recover", "reinit"),
    "The past": ("rows", "diff", "blame", "sql", "export", "replay", "pin", "unpin", "pins"),
    "The installation": ("setup", "acls", "backup", "restore"),
}
"""Heading in the help -> commands; the first are those that people need first."""
