"""Accounts: who holds a page, as one integer.

Every page of a pool is in exactly one account (R28): `free`, `pending` (surrendered inside an
open free group, R29), `reserved` (page 0), `request(id)`, `tree(node)` or `in_flight(transfer)`. An account is coded
in one int64, the kind in the low three bits and the id above them, so that a whole pool is one
array and a change of owner is one store.
"""

from enum import IntEnum
from typing import NewType

from radixledger.journal.units import NodeId, RequestId, TransferId

Account = NewType("Account", int)


class Kind(IntEnum):
    """The low three bits of an account."""

    FREE = 0
    PENDING = 1
    RESERVED = 2
    REQUEST = 3
    TREE = 4
    IN_FLIGHT = 5
    """Being written by a copy between device and host."""


class Pool(IntEnum):
    """Which pool a page belongs to; the number is what events and SQL carry."""

    FULL = 0
    SWA = 1
    RECURRENT = 2
    """States of a recurrent model: a page is one slot, and what is called a slot there."""
    HOST = 3


# Plain integers, not enum members: accounts are compared and shifted with every page that moves.
FREE = Account(int(Kind.FREE))
PENDING = Account(int(Kind.PENDING))
RESERVED = Account(int(Kind.RESERVED))
_REQUEST, _TREE, _IN_FLIGHT = int(Kind.REQUEST), int(Kind.TREE), int(Kind.IN_FLIGHT)


def request_account(request: RequestId) -> Account:
    """The account of one request; request 0 is the unbound account."""
    return request << 3 | _REQUEST  # type: ignore[return-value]  # naming the type would double the cost


def tree_account(node: NodeId) -> Account:
    """The account of one node of the radix tree."""
    return node << 3 | _TREE  # type: ignore[return-value]  # as above


def transfer_account(transfer: TransferId) -> Account:
    """The account of a copy under way: what it writes is nobody else's until it has ended (B19)."""
    return Account(transfer << 3 | _IN_FLIGHT)


def kind_of(account: int) -> Kind:
    """The kind in an account's code; raises ValueError for a code that names none."""
    return Kind(account & 7)


def holder_of(account: int) -> int:
    """The request, node or transfer number in an account's code; 0 for the accounts without one."""
    return account >> 3


def describe(account: int) -> str:
    """An account in words, as errors and reports print it: `free`, `request(7)`, `tree(3)`, `in_flight(2)`.

    Total: a code that names no account is told as `unknown(CODE)`, for hostile journals.
    """
    kind = account & 7
    if kind == Kind.REQUEST:
        return f"request({account >> 3})" if account >> 3 else "request(unbound)"
    if kind == Kind.TREE:
        return f"tree({account >> 3})"
    if kind == Kind.IN_FLIGHT:
        return f"in_flight({account >> 3})"
    if account in (FREE, PENDING, RESERVED):
        return Kind(account).name.lower()
    return f"unknown({account})"
