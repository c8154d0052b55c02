"""The units of the house: what a number counts is part of its type.

This module holds names only. Rule: a function that takes one unit cannot be handed another
without the type checker noticing (R19, R256); arithmetic between units is written out where
it happens, as `page * page_size`.
"""

from typing import NewType

TokenCount = NewType("TokenCount", int)
"""A number of tokens of a sequence."""

KeyLen = NewType("KeyLen", int)
"""A length in key units: tokens for raw keys, pairs for bigram keys (one fewer than tokens)."""

PageId = NewType("PageId", int)
"""A page of one pool on one rank; page 0 is the padding sink and is never handed out (R51)."""

PageCount = NewType("PageCount", int)
"""A number of pages, or a position in a page table."""

Slot = NewType("Slot", int)
"""One token's place in a pool: page * page_size + offset."""

Seq = NewType("Seq", int)
"""The place of an event in one rank's journal; the first event has 1."""

NodeId = NewType("NodeId", int)
"""A node of one rank's radix tree; the root is 0 and ids are never used twice."""

RequestId = NewType("RequestId", int)
"""A request's number on one rank, never used twice; its row is the number modulo the row count.

0 is "unbound": pages handed to a caller that did not say for whom."""

BoundaryId = NewType("BoundaryId", int)
"""The mark of a node up to which some window lock reaches; 0 means "to the root" (R119)."""

TransferId = NewType("TransferId", int)
"""A copy under way between device and host, never used twice; 0 is "none"."""

Rank = NewType("Rank", int)
"""One data-parallel shard of the server."""

Pages = NewType("Pages", bytes)
"""Page ids, packed as little-endian int32: the form in which pages travel."""

NO_PAGES = Pages(b"")
ROOT = NodeId(0)
UNBOUND = RequestId(0)
TO_ROOT = BoundaryId(0)
NO_TRANSFER = TransferId(0)
FIRST = Seq(1)
SEQ_MAX = Seq((1 << 63) - 1)
