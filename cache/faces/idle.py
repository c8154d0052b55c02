"""What a server may rely on when nobody is live: the ledger identity, the sums of an idle pool, the order of a flush.

It works on any cache and allocator that have the calls of the faces, and looks at nothing else of them. Rules: a check
names pool, rank, what was expected and what was found; asking changes nothing, and that is proven each time; a flush
looks before it clears and after it, so that it can hide nothing (R33).
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

R = TypeVar("R")

Row = Mapping[str, Any]
"""One rank's ledger, as the faces' `ledger()` gives it."""

POOLS = ("full", "swa")
TERMS = (
    "available",
    "tree_evictable",
    "tree_protected",
    "request_owned",
    "reserved_page_slack",
    "pending_free",
)
"""What the tokens of a pool are: their sum is its capacity (R156, A1, A3)."""

DIAGNOSTICS = (
    "mapping_invalid_count",
    "mapping_duplicate_count",
    "full_duplicate_request_owner_count",
    "swa_duplicate_request_owner_count",
    "full_request_tree_overlap_count",
    "swa_request_tree_overlap_count",
)
"""Numbers that are zero in every lawful state (R155)."""

MAY_HAVE_SLACK = ("legacy",)
"""Routes whose tree may hold pages that are not full (A1)."""


class LedgerBroken(RuntimeError):
    """A ledger that does not add up, or was not idle where it had to be; `findings` says where."""

    def __init__(self, findings: list[str]) -> None:
        super().__init__("; ".join(findings))
        self.findings = findings


class Changed(RuntimeError):
    """Something that should only have looked at a cache changed it (R157)."""


class Flushable(Protocol):
    """What a flush asks of a cache."""

    def supports_swa(self) -> bool:
        """Whether there are two pools, and with them a ledger."""

    def ledger(self) -> list[dict[str, Any]]:
        """The accounts of every rank, in order."""

    def record_ledger(self, phase: str, /) -> None:
        """Write them into the journals."""

    def reset(self) -> None:
        """Empty the tree."""


class Clearable(Protocol):
    """What a flush asks of the pool of rows, and of the allocator."""

    def clear(self) -> None:
        """Take everything back."""


class Pools(Protocol):
    """What is asked of an allocator to see whether anything moved."""

    page_size: int

    def full_available_size(self, dp_rank: int = 0, /) -> int:
        """Free FULL tokens."""

    def swa_available_size(self, dp_rank: int = 0, /) -> int:
        """Free SWA tokens."""


def ledger_findings(row: Row, *, require_idle: bool = False) -> list[str]:
    """What is wrong with one rank's ledger; nothing, if it is right.

    The identity of each pool (R156), mappings as many as SWA owners (R169), diagnostics of zero (R155), and if it has to
    be idle (A2): nobody owns, nothing is pending, no page is partly filled but where a route may leave one.
    """
    found = []
    rank = f"rank {row['dp_rank']}"
    for pool in POOLS:
        terms = {term: int(row[f"{pool}_{term}"]) for term in TERMS}
        capacity, total = int(row[f"{pool}_capacity"]), sum(terms.values())
        if total != capacity:
            parts = " + ".join(f"{name} {value}" for name, value in terms.items() if value)
            found.append(f"{rank}, {pool} pool: capacity is {capacity}, accounted for are {total} ({parts})")
        if require_idle:
            slack = "reserved_page_slack" if row.get("route") not in MAY_HAVE_SLACK else ""
            found += [
                f"{rank}, {pool} pool: idle, and {term} is {terms[term]}, expected 0"
                for term in ("request_owned", "pending_free", slack)
                if term and terms[term]
            ]
    owners = sum(int(row[f"swa_{term}"]) for term in ("tree_evictable", "tree_protected", "request_owned"))
    mapped = int(row["mapping_nonzero_count"]) - int(row["swa_reserved_page_slack"])
    if mapped != owners:
        found.append(f"{rank}, swa pool: {owners} tokens have an owner, {mapped} are mapped")
    found += [f"{rank}: {name} is {row[name]}, expected 0" for name in DIAGNOSTICS if row[name]]
    if require_idle and not row["idle"]:
        found.append(f"{rank}: requests, a free group or a step are live")
    return found


def check_ledgers(rows: Iterable[Row], *, require_idle: bool = False) -> None:
    """Raises LedgerBroken for the rows of any rank that are not right; see `ledger_findings`."""
    found = [each for row in rows for each in ledger_findings(row, require_idle=require_idle)]
    if found:
        raise LedgerBroken(found)


def looked_at(pools: Pools, ranks: int, look: Callable[[], R], containers: Iterable[Any] = ()) -> R:
    """What `look` says of a cache; raises Changed if it moved a page, or put anything into the given containers (R157)."""
    kept = list(containers)

    def fingerprint() -> list[Any]:
        sizes = [(pools.full_available_size(rank), pools.swa_available_size(rank)) for rank in range(ranks)]
        return [sizes, [(sorted(map(repr, each)), len(each)) for each in kept]]

    before = fingerprint()
    result = look()
    after = fingerprint()
    if after != before:
        raise Changed(f"looking at the ledger mutated cache ownership state: {before} became {after}")
    return result


def live_requests(*sources: Iterable[Any]) -> list[Any]:
    """The requests of every queue and batch, each once, in order of mention (R168).

    Raises LedgerBroken if two different objects say that they are the request with one id.
    """
    by_identity = {id(req): req for source in sources for req in source}
    by_rid: dict[Any, Any] = {}
    for req in by_identity.values():
        if by_rid.setdefault(req.rid, req) is not req:
            raise LedgerBroken([f"two live requests have the id {req.rid!r}"])
    return list(by_identity.values())


class PoolSums(NamedTuple):
    """One pool of an idle rank, in tokens: what counters say, without a look at tree or rows (R174)."""

    name: str
    page_size: int
    capacity: int
    available: int
    owned: int
    """Tokens that have an owner."""


def pool_findings(pool: PoolSums) -> list[str]:
    """What is wrong with the sums of an idle pool (R175): whole pages, no more than there are, and pages that are owned.

    A page that is not available holds between one token and a page of them.
    """
    size, found = pool.page_size, []
    for name, value in (("capacity", pool.capacity), ("available", pool.available)):
        if value % size:
            found.append(f"{pool.name} pool: {name} is {value}, no multiple of its pages of {size}")
    if pool.available > pool.capacity:
        found.append(f"{pool.name} pool: {pool.available} available, capacity is {pool.capacity}")
    held = pool.capacity - pool.available
    if not found and not held // size <= pool.owned <= held:
        found.append(
            f"{pool.name} pool: {held // size} pages are not available, so {held // size} to {held} tokens have an "
            f"owner; found {pool.owned}"
        )
    return found


class FlushOutcome(NamedTuple):
    """How a flush ended: `flushed`, or `busy` with the reason, in which case nothing was asked and nothing changed."""

    outcome: str
    reason: str = ""


def flush_idle(cache: Flushable, rows: Clearable, allocator: Clearable, *, busy: str = "") -> FlushOutcome:
    """Empty an idle cache, in the one order in which nothing can hide (R176).

    Ledger, tree, rows, allocator, ledger. `busy` is what keeps the server from being idle; then nothing is asked and
    nothing changes (R177). A cache without SWA keeps no ledger to ask (R178). Raises LedgerBroken before anything is
    cleared if the ledger is not idle and right, and afterwards if anything is left (R165, R166).
    """
    if busy:
        return FlushOutcome("busy", busy)
    asked = cache.supports_swa()
    if asked:
        check_ledgers(cache.ledger(), require_idle=True)
        cache.record_ledger("pre_flush")
    cache.reset()
    rows.clear()
    allocator.clear()
    if asked:
        after = cache.ledger()
        check_ledgers(after, require_idle=True)
        _check_empty(after)
        cache.record_ledger("post_flush")
    return FlushOutcome("flushed")


def _check_empty(rows: Iterable[Row]) -> None:
    """Everything is available, and nothing is mapped (R165, R166)."""
    found = []
    for row in rows:
        for pool in POOLS:
            capacity, available = row[f"{pool}_capacity"], row[f"{pool}_available"]
            if capacity != available:
                found.append(
                    f"rank {row['dp_rank']}, {pool} pool: flushed, and {available} of {capacity} are available"
                )
        if row["mapping_nonzero_count"]:
            found.append(
                f"rank {row['dp_rank']}: flushed, and {row['mapping_nonzero_count']} tokens are mapped"
            )
    if found:
        raise LedgerBroken(found)
