"""One round of a continuous comparison: all tables of an agreement, at a bounded cost."""

from streaming.compare.run import Pace, Waiting, compared_tables
from streaming.compare.sides import HUB, ComparedSide, opened_side, side_named
from streaming.config.config import Config
from streaming.config.sections import AgreementConfig
from streaming.facts.consumers.compared import ComparedRound


def compared_consumer(
    config: Config,
    agreement: AgreementConfig,
    side: ComparedSide,
    waiting: Waiting,
    pace: Pace,
    load: str | None,
) -> ComparedRound:
    """Compare a consumer's tables with the hub's; StateError or StoreError: one cannot be read.

    The hub's rows of a table are read at its beginning, and each of its ranges when its time has
    come; what was written in between is in flight, and is looked at again.
    """
    known, wanted = config.table_map(), config.tables_of(agreement)
    tables = [known[name] for name in known if name in wanted]
    began_s = waiting.now()
    with (
        opened_side(config, side_named(config, HUB, {}), load) as hub,
        opened_side(config, side, load) as replica,
    ):
        found = compared_tables(tables, hub, replica, waiting, parts=pace.parts)
    return ComparedRound(
        agreement.name,
        rows=sum(max(one.rows) for one in found),
        differing=sum(len(one.differing) for one in found),
        more_differ=any(one.is_cut for one in found),
        in_flight=sum(one.in_flight for one in found),
        seconds=round(waiting.now() - began_s, 3),
    )
