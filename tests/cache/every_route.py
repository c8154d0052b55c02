"""What tests of every route's face have in common: the routes by what they own, a roomy server, and when it is idle."""

import pytest

from .server import Server

ROUTES = ("unified", "legacy", "radix", "swa_chunk", "chunk")
WITH_SWA = ("unified", "legacy", "swa_chunk")
CHUNKS = ("swa_chunk", "chunk")

paged = pytest.mark.parametrize("page_size", [1, 16, 128, 256])
two_ranks = pytest.mark.parametrize("dp_size", [1, 2])


def roomy(route: str, page_size: int, *, dp_size: int = 1, disable: bool = False) -> Server:
    """40 pages a pool and rank, a window of two pages."""
    return Server(
        page_size, 2 * page_size, full_pages=40, swa_pages=40, dp_size=dp_size, route=route, disable=disable
    )


def idle(server: Server) -> bool:
    """Whether every slot of every rank is free, and nothing is mapped."""
    return all(
        rank.state.full.available == rank.state.full.capacity
        and rank.state.swa.available == rank.state.swa.capacity
        and not rank.state.mapping.nonzero
        for rank in server.allocator.ranks
    )
