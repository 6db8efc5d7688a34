"""`python -m deploy.dashboards` writes the boards into deploy/grafana."""

from pathlib import Path

from deploy.dashboards import agents, agreement, conflicts, internals, overview, replica
from deploy.dashboards.render import rendered

FOLDER = Path(__file__).parents[1] / "grafana"
BOARDS = (
    overview.BOARD,
    agreement.BOARD,
    conflicts.BOARD,
    replica.BOARD,
    internals.BOARD,
    agents.BOARD,
)


def files() -> dict[Path, str]:
    """The file of each board, and what it must say."""
    return {FOLDER / f"{board.uid}.json": rendered(board) for board in BOARDS}


if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
