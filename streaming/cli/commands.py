"""All commands, each with its place and its first sentence, and what they are for."""

from streaming.cli.lazy import CommandPlace

_SENTENCES = {
    "streaming.cli.start.setup:setup": (
        "Fetch the jars of Spark and Kafka into the cache; afterwards nothing is downloaded."
    ),
    "streaming.cli.start.run:demo": (
        "Run three replicas that conflict and one hub: exit 0 if all checks of the result pass."
    ),
    "streaming.cli.start.run:run": (
        "Run the hub until SIGTERM or Ctrl-C; it stops after a complete batch."
    ),
    "streaming.cli.repair.reinit:reinit": (
        "Empty the database of a replica whose agent is stopped; started, it gets everything anew."
    ),
    "streaming.cli.repair.recover:recover": (
        "Give up the lost input of a replica, or go on from a state that was restored by hand."
    ),
    "streaming.cli.repair.undo:undo": (
        "Write rows of a table as they stood back, for everybody: first what that would do."
    ),
    "streaming.cli.order.pause:resume": (
        "Send to an agreement again that stopped at a refused row: first what was refused."
    ),
    "streaming.cli.order.resync:resync": (
        "Bring a consumer what it lacks, each row once as it stands; or show what is under way."
    ),
    "streaming.cli.order.pause:pause": (
        "Send nothing more to a consumer; what it writes still reaches the others."
    ),
    "streaming.cli.order.init:init": (
        "Fill a new, empty replica with every row as it stands, once its agent is started."
    ),
    "streaming.cli.order.retire:retire": (
        "Take a replica out for good: what the hub has of it reaches all others, the rest is gone."
    ),
    "streaming.cli.order.clean_ruv:clean_ruv": (
        "Take a rid out of the RUV whose replica is configured no more, or let a new one have it."
    ),
    "streaming.cli.order.backup:backup": (
        "Copy the state as its last commit left it; the hub may go on working."
    ),
    "streaming.cli.order.backup:restore": (
        "Make the hub's state of a backup; the hub must not run, and its state be away."
    ),
    "streaming.cli.look.status:status": (
        "Show the state of the hub, what needs a person first; exit 1 if something does."
    ),
    "streaming.cli.look.top:top": (
        "Show the state of the hub on the whole screen until Ctrl-C; into a pipe only once."
    ),
    "streaming.cli.start.doctor:doctor": (
        "Check Java, configuration, state, disk, clocks, broker and topics; exit 1 if one is wrong."
    ),
    "streaming.cli.start.acls:acls": (
        "Print the rights in Kafka that the hub, each agent and those who ask need."
    ),
    "streaming.cli.look.schema:schema": (
        "Compare the schemas of all replicas with each other and with the configuration."
    ),
    "streaming.cli.look.compare:compare": (
        "Compare the rows of two replicas, or of a replica and the hub; exit 0 if they are equal."
    ),
    "streaming.cli.look.level:level": (
        "Exit 0 when every consumer has everything that the hub and its topics have."
    ),
    "streaming.cli.order.abort:abort": (
        "End an open transaction; its rows are refreshed at its origin."
    ),
    "streaming.cli.past.replay:replay": (
        "Judge the past again, and compare with what the hub recorded."
    ),
    "streaming.cli.past.rows:rows": (
        "Show the rows of a table, as they stand or as they stood at a moment."
    ),
    "streaming.cli.past.rows:diff": (
        "Show which rows stand otherwise at a later moment, column by column."
    ),
    "streaming.cli.past.rows:blame": "Show by column who wrote what stands in a row.",
    "streaming.cli.look.explain:explain": (
        "Show why a change won or lost: what came when, what it met, and what it caused."
    ),
    "streaming.cli.past.verify:verify": (
        "Audit what the hub recorded; a running hub is not disturbed."
    ),
    "streaming.cli.past.sql:sql": (
        "Query all tables by SQL, as they stand or as they stood at a moment."
    ),
    "streaming.cli.order.packets:export": (
        "Export a packet at once; or write all tables into a new SQLite file."
    ),
    "streaming.cli.order.packets:import_": (
        "Hand packets of replicas to the hub, which takes them within a second."
    ),
    "streaming.cli.order.pin:pin": (
        "Keep the state of a hub epoch readable until `slackwater unpin`."
    ),
    "streaming.cli.order.pin:unpin": (
        "Release a pinned hub epoch: what only it needs is removed as the replay window says."
    ),
    "streaming.cli.order.pin:pins": (
        "List the pins, each with the bytes of files that are kept for readers of the past alone."
    ),
    "streaming.cli.look.positions:ruv": (
        "Show the hub's RUV of each data set in the text form of 389 Directory Server."
    ),
    "streaming.cli.look.positions:lacks": (
        "Show what a consumer lacks by its last acknowledgement, and where sending starts."
    ),
    "streaming.cli.look.lspacket:lspacket": (
        "List the packets of a folder; exit 1 if a file is none or is damaged."
    ),
    "streaming.cli.look.lsepoch:lsepoch": (
        "Show the epoch number matrix: who has how many changes of whom."
    ),
    "streaming.cli.look.wait:wait": (
        "Wait until a change, or all that there is now, is acknowledged everywhere; exit 0 then."
    ),
    "streaming.cli.order.chepoch:chepoch": (
        "Set the row of a replica in the matrix: what lies behind it is sent again."
    ),
    "streaming.cli.order.chepoch:recoverpacket": (
        "Set the row of a replica to what it was before a time, so that all since is sent again."
    ),
    "streaming.cli.start.attach:attach": (
        "Make a database a replica, for its agent to start; print first what that does."
    ),
    "streaming.cli.start.attach:detach": (
        "Remove every trace of an agent from a database, and look that nothing is left."
    ),
    "streaming.cli.start.agent:app": "Run the agent of one replica until SIGTERM or Ctrl-C.",
    "streaming.cli.look.conflicts:app": "Changes that lost, and refused rows.",
    "streaming.cli.repair.quarantine:app": "Records the hub could not process.",
    "streaming.cli.repair.local:app": "Writes that stayed at one replica.",
    "streaming.cli.start.config:app": "The configuration.",
    "streaming.cli.start.services:app": "An embedded Kafka broker.",
}
"""The place of a command -> the first sentence of its docstring."""
COMMANDS = tuple(CommandPlace(*one) for one in _SENTENCES.items())

PURPOSES = {
    "First": (
        *("demo", "services", "config", "run", "agent"),
        *("level", "status", "doctor", "conflicts", "explain"),
    ),
    "The installation": ("attach", "detach", "setup", "acls", "backup", "restore"),
    "Look": ("top", "compare", "schema", "ruv", "lacks", "lsepoch", "lspacket", "wait", "verify"),
    "Order": (
        *("init", "pause", "resync", "resume", "abort"),
        *("retire", "clean-ruv", "export", "import"),
    ),
    "Repair": ("undo", "quarantine", "local", "recover", "reinit", "chepoch", "recoverpacket"),
    "The past": ("rows", "diff", "blame", "sql", "replay", "pin", "unpin", "pins"),
}
"""Heading in the help -> commands; the first are those that people need first."""
