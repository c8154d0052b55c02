"""Events about blocks in the wire form that vLLM and SGLang publish for routers.

A batch is the array `[time, events, rank]` in msgpack, an event an array that begins with its name:

    ["BlockStored", hashes, parent hash or nil, token ids, tokens per block, LoRA id (nil), medium]
    ["BlockRemoved", hashes, medium]
    ["AllBlocksCleared"]
"""

import msgspec

DEVICE, HOST = "GPU", "CPU"
"""Media, in the words that subscribers know: the first is the device, whatever it is."""


class KvEvent(msgspec.Struct, array_like=True, tag=True, frozen=True, gc=False):
    """The parent of what is published."""


class BlockStored(KvEvent, frozen=True, gc=False):
    """Blocks that follow each other are held from now on, behind the block `parent_block_hash` (None: at the beginning).

    token_ids: of all of them, in order; empty where the journal holds hashes only.
    """

    block_hashes: list[int]
    parent_block_hash: int | None
    token_ids: list[int]
    block_size: int
    lora_id: int | None = None
    medium: str = DEVICE


class BlockRemoved(KvEvent, frozen=True, gc=False):
    """Blocks that are held on `medium` no more."""

    block_hashes: list[int]
    medium: str = DEVICE


class AllBlocksCleared(KvEvent, frozen=True, gc=False):
    """Nothing is held: the server began, or was flushed; or nothing is known to be, because events are missing."""


class Batch(msgspec.Struct, array_like=True, frozen=True):
    """What one frame did; `ts` in seconds, as the journal has it."""

    ts: float
    events: list[KvEvent]
    data_parallel_rank: int
