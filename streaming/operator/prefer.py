"""Let a row of one replica stand for everybody, which a comparison found to differ."""

from collections.abc import Iterable

from streaming.core.model.change import Op
from streaming.core.model.command import Command, app_of, parse_row_repair
from streaming.operator.hub_changes import HubChangeWriter


def act(commands: Iterable[Command], author: HubChangeWriter) -> int:
    """Carry out commands that are `prefer`; how many name a table that is not configured.

    Each is judged by the hub epoch that the operator looked at, so it loses to whatever came since;
    then the hub's row is sent to the replica that has it otherwise.
    """
    unknown = 0
    for command in commands:
        order = parse_row_repair(command.argument or "")
        if not author.knows(order.table):
            unknown += 1
            continue
        op = Op.DELETE if order.after is None else Op.UPDATE
        app = app_of("compare", order.who)
        images = order.after, order.before
        row, stands_at = (order.table, order.key), order.rid
        author.make(*row, op, *images, command.seen, stands_at=stands_at, app=app)
    return unknown
