"""The configuration without the replicas that an operator has retired for good."""

from checkpoints.reading.reader import Reader
from streaming.config.config import Config


def serving(config: Config, reader: Reader) -> Config:
    """The configuration of those that are served; what is retired for good has to be level no more.

    It stays in the file until the operator removes it.
    """
    known = reader.commit.state.replicas if reader.commit else {}
    gone = {r.name for r in config.replicas if r.rid in known and known[r.rid].is_retired_for_good}
    if not gone:
        return config
    return config.model_copy(
        update={
            "replicas": [one for one in config.replicas if one.name not in gone],
            "agreements": [one for one in config.agreements if one.consumer not in gone],
        }
    )
