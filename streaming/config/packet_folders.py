"""The folders of packets: where they are, and whether a hub can work with them."""

import os
from collections.abc import Iterator
from pathlib import Path

from streaming.config.config import Config


def from_folder(config: Config, folder: Path) -> Config:
    """The configuration with the folders of its packets from this folder on."""
    agreements = tuple(
        one
        if one.packets is None
        else one.model_copy(update={"packets": folder / one.packets.expanduser()})
        for one in config.agreements
    )
    return config.model_copy(update={"agreements": agreements})


def packet_faults(config: Config) -> Iterator[str]:
    """One sentence for each folder in which no packet can be written or found."""
    for index, one in enumerate(config.agreements):
        fault = None if one.packets is None else folder_fault(one.packets)
        if fault is not None:
            yield f"agreements[{index}].packets = {str(one.packets)!r}: {fault}"


def folder_fault(folder: Path) -> str | None:
    """What is wrong with a folder of packets, with what to do; None: nothing."""
    if not folder.exists():
        return "there is no such folder: make it, or mount what it is on"
    if not folder.is_dir():
        return "it is no folder: name one"
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return "files cannot be written there: give the hub's user the right to"
    return None
