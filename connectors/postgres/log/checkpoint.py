"""The checkpoint of the log as the capture row has it."""

from dataclasses import replace

from connectors.postgres.install.system import Capture
from connectors.postgres.log.fold import FoldState, Numbering
from connectors.postgres.log.journal import LogCheckpoint
from connectors.postgres.log.lsn import lsn_text, parse_lsn
from connectors.postgres.log.numbering import numbering_text
from streaming.core.model.csn import Generator


def checkpoint_of(capture: Capture, rid: int) -> LogCheckpoint:
    """The checkpoint that is stored."""
    generator = Generator(rid, capture.time_s, capture.sequence)
    state = FoldState(generator, capture.opno, capture.epoch)
    return LogCheckpoint(parse_lsn(capture.lsn), state, capture.csn, int(capture.published))


def captured(capture: Capture, checkpoint: LogCheckpoint, numbering: Numbering) -> Capture:
    """The row with another checkpoint."""
    generator = checkpoint.state.generator
    return replace(
        capture,
        lsn=lsn_text(checkpoint.lsn),
        time_s=generator.time_s,
        sequence=generator.sequence,
        opno=checkpoint.state.opno,
        epoch=checkpoint.state.epoch,
        csn=checkpoint.csn,
        published=str(checkpoint.published),
        numbering=numbering_text(numbering),
    )
