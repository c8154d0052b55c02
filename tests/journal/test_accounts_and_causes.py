"""Who holds a page, and why an event happened: numbers that are promises."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radixledger.journal.accounts import (
    FREE,
    PENDING,
    RESERVED,
    Kind,
    Pool,
    describe,
    holder_of,
    kind_of,
    request_account,
    tree_account,
)
from radixledger.journal.causes import Operation, Site, cause, label
from radixledger.journal.units import NodeId, RequestId

IDS = st.integers(0, 2**60 - 1)


@given(IDS, IDS)
def test_an_account_tells_its_kind_and_its_holder(request_number: int, node: int) -> None:
    """R28."""
    account = request_account(RequestId(request_number))
    assert (kind_of(account), holder_of(account)) == (Kind.REQUEST, request_number)
    account = tree_account(NodeId(node))
    assert (kind_of(account), holder_of(account)) == (Kind.TREE, node)
    assert account < 2**63, "an account is one int64"


@given(IDS, IDS)
def test_no_two_holders_share_an_account(one: int, other: int) -> None:
    requests = {request_account(RequestId(each)) for each in (one, other)}
    nodes = {tree_account(NodeId(each)) for each in (one, other)}
    fixed = {FREE, PENDING, RESERVED}
    assert len(requests | nodes | fixed) == 2 * len({one, other}) + 3


def test_accounts_read_as_people_say_them() -> None:
    accounts = [FREE, PENDING, RESERVED, request_account(RequestId(0)), request_account(RequestId(7))]
    assert [describe(each) for each in [*accounts, tree_account(NodeId(3))]] == [
        "free",
        "pending",
        "reserved",
        "request(unbound)",
        "request(7)",
        "tree(3)",
    ]


@given(st.integers())
def test_any_number_can_be_described_and_only_real_kinds_are_kinds(code: int) -> None:
    assert describe(code)
    if code & 7 > Kind.IN_FLIGHT:
        assert describe(code) == f"unknown({code})"
        with pytest.raises(ValueError, match="Kind"):
            kind_of(code)


def test_the_numbers_of_kinds_and_pools_are_kept() -> None:
    """J5: they stand in every journal that was ever written."""
    assert [each.name for each in Kind] == ["FREE", "PENDING", "RESERVED", "REQUEST", "TREE", "IN_FLIGHT"]
    assert [each.name for each in Pool] == ["FULL", "SWA", "RECURRENT", "HOST"]
    assert [*Kind, *Pool] == [0, 1, 2, 3, 4, 5, 0, 1, 2, 3]


def test_every_cause_is_one_number_and_one_phrase() -> None:
    """J4."""
    codes = {(operation, site): cause(operation, site) for operation in Operation for site in Site}
    assert len(set(codes.values())) == len(codes)
    assert len({label(code) for code in codes.values()}) == len(codes)
    assert cause(Operation.FINISH, Site.DUPLICATE) == 5 << 5 | 1
    assert label(cause(Operation.FINISH, Site.DUPLICATE)) == "finish/duplicate"
    assert label(cause(Operation.MATCH)) == "match"
    assert max(Site) < 32, "a site has five bits"


@given(st.integers(0, 2**40))
def test_a_cause_of_the_future_is_told_as_unknown(code: int) -> None:
    known = code >> 5 in set(Operation) and code & 31 in set(Site)
    assert (label(code) == f"unknown({code})") == (not known)
