"""Which planned batch a hub began to finish: one that a second hub dies of is read with care.

A small file beside the tables. It is scratch: without it a batch is read as ever.
"""

import json

from checkpoints.commit.epochs import Plan
from checkpoints.root import read_file, replace_file
from streaming.core.access.root import StateRoot

FILE = "finishing.json"


def was_begun(root: StateRoot, plan: Plan) -> bool:
    """Return whether a hub before this one began to finish this plan, and note that this one does.

    So two have died of it: the one that planned it, and the one that began to finish it.
    """
    note = json.dumps({"batch": plan.batch, "at_ms": plan.at_ms}).encode()
    try:
        is_begun = read_file(root, FILE) == note
    except OSError:
        is_begun = False
    if not is_begun:
        replace_file(root, FILE, note)
    return is_begun
