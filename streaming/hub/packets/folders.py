"""Writes the packets that batches export into the folders of their agreements."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from connectors.packets.format import write_updates
from connectors.packets.header import UpdatesHeader

LOG = logging.getLogger("slackwater")


@dataclass(slots=True)
class PacketFolders:
    """The folders by agreement; `refused`: agreement -> why its last packet is not there."""

    folders: Mapping[str, Path]
    refused: dict[str, str] = field(default_factory=dict)

    @property
    def problems(self) -> dict[str, str]:
        """What keeps packets from being written -> what to do."""
        return {
            f"packets of agreement {name} cannot be written into {self.folders[name]}": (
                f"{why}: make room there, or give the hub's user the right to; the hub tries again"
            )
            for name, why in [*self.refused.items()]
        }

    def write(self, header: UpdatesHeader, records: Iterable[bytes]) -> bool:
        """Write a packet, in as many files as it needs; whether it is there. What fails is named.

        One whose agreement has no folder any more is nowhere missed: it is not sent packets now.
        """
        name = header.agreement
        folder = self.folders.get(name)
        if folder is None:
            return True
        try:
            write_updates(folder, header, records)
        except OSError as error:
            why = error.strerror or str(error)
            if self.refused.get(name) != why:
                LOG.warning(
                    "%s is not written into %s (%s): trying again", header.name, folder, why
                )
            self.refused[name] = why
            return False
        if self.refused.pop(name, None) is not None:
            LOG.info("packets of agreement %s are written into %s again", name, folder)
        return True
