"""How Python and Arrow deal with memory in a process that only works on batches."""

import gc

import pyarrow as pa

COLLECT_AFTER = (50_000, 10, 10)
"""Python looks for cycles after so many new objects, 700 by default: a large batch adds a row to
the window for each of its changes, and all would be looked at time and again."""
KEPT_MS = 10_000
"""How long Arrow keeps memory that is free: each batch needs as much as the one before, and what
comes from the system anew is cleared page by page, which takes longer than to fill it."""


def keep_memory() -> None:
    """Let a process that only works on batches deal with memory as that needs it."""
    gc.set_threshold(*COLLECT_AFTER)
    if "jemalloc" in pa.supported_memory_backends():
        pa.set_memory_pool(pa.jemalloc_memory_pool())
        pa.jemalloc_set_decay_ms(KEPT_MS)
