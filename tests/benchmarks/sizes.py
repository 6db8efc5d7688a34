"""How much each measure takes: the sizes of `make bench`, and those that fit into six minutes."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sizes:
    """One field for each option of the command line."""

    repeats: int = 3
    """of the measures that are no rounds: each time in a process of its own"""
    rounds: int = 3
    """of the measures that alternate: the median of the ratios within a round counts"""
    events: int = 1_000_000
    """of throughput, over all writers"""
    naive_events: int = 1_000_000
    """how much of it the naive peer processes"""
    naive_rounds: int = 3
    """in which the naive peer works, once in an empty table and once in one with a past"""
    naive_rows: int = 10_000_000
    """in the table with a past; 0: only the empty one"""
    batches: int = 100
    """of 1,000 events in each round of batch_1000"""
    rates: tuple[int, ...] = (2_000, 5_000)
    """changes a second of latency"""
    seconds: float = 180
    """of each rate, measured"""
    warm_up_s: float = 30
    """of each rate, before that"""
    contended_events: int = 200_000
    """of each step of contention"""
    percents: tuple[int, ...] = (0, 1, 10, 50)
    """of conflicts"""
    foreign_events: int = 400_000
    """in each spelling"""
    filtered_events: int = 400_000
    """without filters, and with them"""
    bad_events: int = 100_000
    """broken records"""
    bad_good_s: float = 20
    """of good records beside them"""
    floods: tuple[str, ...] = ("junk", "valid", "dear")
    """kinds of records with which one replica floods its topic"""
    flood_s: float = 30
    """for which the others write, without a flood and beside one"""
    transaction_rows: int = 1_000_000
    """of one transaction"""
    fan_out_events: int = 100_000
    """to each number of agreements"""
    fan_out: tuple[int, ...] = (3, 10, 50)
    """numbers of agreements"""
    rows: tuple[int, ...] = (1_000_000, 10_000_000)
    """sizes of table `rows`"""
    changelog: tuple[int, ...] = (1_000_000, 20_000_000)
    """sizes of the changelog"""
    growth_batches: int = 200
    """of 1,000 events, on each of these"""
    commits: int = 3_000
    """in a row, with maintenance on"""
    backlog_events: int = 5_000_000
    """written while the hub is down"""
    absence_events: int = 1_000_000
    """written while one consumer is away"""
    absence_s: float = 30
    """for which the others write at a steady rate, without it and while it comes back"""
    initial_rows: int = 10_000_000
    """that a new replica is filled with"""
    past_events: int = 10_000_000
    """judged by a hub, and again by replay and verify"""
    start_runs: int = 3
    """of start: the median counts"""
    takeover_rows: int = 900_000
    """that the standby's window holds"""
    cluster_rounds: int = 3
    """of the latency on a cluster and of a local hub, in turns"""
    cluster_s: float = 30
    """of each of these turns"""
    cluster_events: int = 1_000_000
    """that executors carry, in batches of 200,000; the first one is not counted"""
    agent_rows: int = 100_000
    """written, published and applied by one agent"""
    pgbench_s: float = 20
    """of each turn of pgbench"""
    apply_before: str = "HEAD~1"
    """the commit beside which rows are applied"""
    apply_rows: int = 30_000
    """inserted and updated by each side"""
    apply_rounds: int = 8
    """of apply, whose difference is small"""
    compared_rows: int = 1_000_000
    """equal at two databases"""
    observed_rounds: int = 8
    """of observed, whose difference is small"""
    observed_s: float = 15
    """of each of its turns"""
    idle_s: float = 60
    """of a hub that has nothing to do"""


QUICK = Sizes(
    rounds=2,
    events=400_000,
    naive_events=200_000,
    naive_rounds=1,
    batches=30,
    rates=(2_000,),
    seconds=20,
    warm_up_s=10,
    contended_events=60_000,
    percents=(0, 10),
    foreign_events=60_000,
    filtered_events=60_000,
    bad_events=30_000,
    bad_good_s=5,
    flood_s=10,
)
"""The sizes of `make bench-quick`."""
