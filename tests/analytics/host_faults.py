"""One fault for each check of the host tier, told like those of `faults`."""

from radixledger.journal.events import (
    Allocated,
    BackupBegun,
    BackupEnded,
    Demoted,
    Gathered,
    LoadBegun,
    LoadEnded,
    Phase,
    Stepped,
    Transferred,
)
from radixledger.journal.units import ROOT, TO_ROOT, NodeId, RequestId, TransferId

from .story import Story, pages, request

Row = dict[str, object]
TWENTY, SEVEN = RequestId(20), NodeId(7)
ONE, TWO = TransferId(1), TransferId(2)
FULL, HOST = pages(20, 21), pages(1, 2)


def leaf(story: Story) -> None:
    """Node 7 has FULL pages 20 and 21 and no window."""
    story.tell(
        Allocated(TWENTY, FULL, pages()),
        Transferred(SEVEN, ROOT, request(20), bytes(8 * 2), FULL, pages()),
    )


def copy(story: Story) -> None:
    """It has a copy, HOST pages 1 and 2."""
    story.tell(BackupBegun(ONE, SEVEN, FULL, HOST))
    story.tell(Gathered(ONE, SEVEN))
    story.tell(BackupEnded(ONE, SEVEN, HOST, landed=True))


def copy_ended_wrong(story: Story) -> Row:
    """The end of a copy that never began."""
    seq = story.tell(BackupEnded(TWO, ROOT, pages(), landed=False))
    return {"seq": seq, "transfer": 2, "begun_seq": None, "begun_pages": 0}


def unread_page_given_up(story: Story) -> Row:
    """Node 7 is demoted while its backup has still to read it."""
    leaf(story)
    begun = story.tell(BackupBegun(ONE, SEVEN, FULL, HOST))
    seq = story.tell(Demoted(SEVEN, FULL, HOST))
    late = story.tell(Gathered(ONE, SEVEN))
    return {"node": 7, "seq": seq, "event": "Demoted", "begun_seq": begun, "gathered_seq": late}


def tombstone_without_copy(story: Story) -> Row:
    """Node 7 is demoted though it has no copy."""
    leaf(story)
    return {"node": 7, "seq": story.tell(Demoted(SEVEN, FULL, pages())), "event": "Demoted"}


def load_landed_under_a_step(story: Story) -> Row:
    """Node 7 comes back to the device while step 3 runs."""
    leaf(story)
    copy(story)
    story.tell(Demoted(SEVEN, FULL, HOST))
    story.tell(LoadBegun(TWO, SEVEN, ROOT, FULL, HOST, TO_ROOT))
    began = story.tell(Stepped(3, Phase.BEGAN))
    seq = story.tell(LoadEnded(TWO, SEVEN, FULL, landed=True))
    story.tell(Stepped(3, Phase.ENDED))
    return {"seq": seq, "transfer": 2, "node": 7, "running_step": 3, "began_seq": began}


FAULTS = (copy_ended_wrong, unread_page_given_up, tombstone_without_copy, load_landed_under_a_step)
