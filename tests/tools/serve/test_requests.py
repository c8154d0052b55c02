"""Request lines: what is taken, what is turned away with its line and field, and how results are written."""

import msgspec
import pytest

from radixledger.tools.serve.requests import (
    BadLine,
    Bounds,
    Request,
    Result,
    encode_request,
    encode_result,
    read_requests,
    refused,
)

BOUNDS = Bounds(vocab_size=512, ranks=2)
GOOD = b'{"rid": "a", "input_ids": [1, 2], "max_new_tokens": 3}'


def read(*lines: bytes) -> list[Request | BadLine]:
    return list(read_requests(lines, BOUNDS))


def test_a_line_needs_three_fields_and_may_have_six_more() -> None:
    full = b"""{"rid": "b", "input_ids": [511], "max_new_tokens": 1, "ignore_eos": true, "arrival_ms": 7,
        "dp_rank": 1, "extra_key": "tenant", "abort_after": 0,
        "priority": -3}""".replace(b"\n", b" ")
    assert read(GOOD, full) == [
        Request("a", [1, 2], 3),
        Request(
            "b",
            [511],
            1,
            ignore_eos=True,
            arrival_ms=7,
            dp_rank=1,
            extra_key="tenant",
            abort_after=0,
            priority=-3,
        ),
    ]


@pytest.mark.parametrize(
    ("line", "field"),
    [
        (b'{"rid": "a", "input_ids": [1, "x"], "max_new_tokens": 3}', "input_ids[1]"),
        (b'{"rid": "a", "input_ids": [], "max_new_tokens": 3}', "input_ids"),
        (b'{"rid": "a", "input_ids": [1.5], "max_new_tokens": 3}', "input_ids[0]"),
        (b'{"rid": "a", "input_ids": [512], "max_new_tokens": 3}', "input_ids[0]"),
        (b'{"rid": "a", "input_ids": [1, -1], "max_new_tokens": 3}', "input_ids[1]"),
        (b'{"rid": "a", "input_ids": [1, 99999999999999999999], "max_new_tokens": 3}', "input_ids[1]"),
        (b'{"rid": "a", "max_new_tokens": 3}', "input_ids"),
        (b'{"rid": "a", "input_ids": [1], "max_new_tokens": 0}', "max_new_tokens"),
        (b'{"rid": "a", "input_ids": [1], "max_new_tokens": 4294967296}', "max_new_tokens"),
        (b'{"rid": "a", "input_ids": [1], "max_new_tokens": 1, "ignore_eos": 1}', "ignore_eos"),
        (b'{"rid": "a", "input_ids": [1], "max_new_tokens": 1, "arrival_ms": -1}', "arrival_ms"),
        (b'{"rid": "a", "input_ids": [1], "max_new_tokens": 1, "dp_rank": -1}', "dp_rank"),
        (b'{"rid": "a", "input_ids": [1], "max_new_tokens": 1, "dp_rank": 2}', "dp_rank"),
        (b'{"rid": "a", "input_ids": [1], "max_new_tokens": 1, "abort_after": -1}', "abort_after"),
        (b'{"rid": "a", "input_ids": [1], "max_new_tokens": 1, "temperature": 0}', "temperature"),
    ],
)
def test_a_bad_line_is_told_with_its_number_and_field_and_keeps_its_id(line: bytes, field: str) -> None:
    """B133: a rank that the server does not have is turned away with a message, too."""
    first, bad, last = read(GOOD, line, GOOD)
    assert isinstance(first, Request)
    assert isinstance(last, Request)
    assert isinstance(bad, BadLine)
    assert (bad.line, bad.field, bad.rid) == (2, field, "a")
    assert str(bad).startswith(f"line 2, {field}: ")


@pytest.mark.parametrize(
    "line", [b"{", b"[1]", b"null", b'{"rid": "\xff"}', b'{"rid": "\\ud800", "input_ids": [1]}', b"\x00"]
)
def test_a_line_that_is_no_object_has_no_field_and_no_id(line: bytes) -> None:
    (bad,) = read(line)
    assert isinstance(bad, BadLine)
    assert (bad.line, bad.field, bad.rid) == (1, "", None)


NESTED = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize("line", [NESTED, b'{"rid": "a", "what": %s}' % NESTED, b'{"rid": %s}' % NESTED])
def test_a_line_that_is_nested_beyond_all_bounds_is_a_bad_line(line: bytes) -> None:
    """The lines around it are served."""
    first, bad, last = read(GOOD, line, GOOD)
    assert isinstance(bad, BadLine)
    assert bad.line == 2
    assert first == last == Request("a", [1, 2], 3)


def test_a_namespace_that_no_rank_would_take_is_a_bad_line() -> None:
    """What the rank refuses as no argument would end the whole run."""
    line = b'{"rid": "a", "input_ids": [1], "max_new_tokens": 1, "extra_key": "%s"}'
    for letter, most in ((b"k", 65531), (b"\xc3\xa9", 32765)):
        (good, bad) = read(line % (letter * most), line % (letter * (most + 1)))
        assert isinstance(good, Request)
        assert isinstance(bad, BadLine)
        assert (bad.line, bad.field, bad.rid) == (2, "extra_key", "a")
        assert "65536 is the most" in str(bad)


@pytest.mark.parametrize("rid", [b"3", b'""', b"null"])
def test_an_id_is_a_text_that_says_something(rid: bytes) -> None:
    (bad,) = read(b'{"rid": %s, "input_ids": [1], "max_new_tokens": 1}' % rid)
    assert isinstance(bad, BadLine)
    assert bad.field == "rid"


def test_blank_lines_are_passed_over_but_counted() -> None:
    (good, bad) = read(b"\n", GOOD, b"  \n", b"{}")
    assert isinstance(good, Request)
    assert isinstance(bad, BadLine)
    assert bad.line == 4


def test_a_request_computes_all_tokens_but_the_last_that_comes_out() -> None:
    assert Request("a", [1, 2, 3], 1).kv_tokens == 3
    assert Request("a", [1, 2, 3], 5).kv_tokens == 7


def test_a_request_is_written_as_it_is_read() -> None:
    requests = [Request("a", [1, 2], 3), Request("b", [7], 1, arrival_ms=9, dp_rank=0, abort_after=0)]
    assert encode_request(requests[0]) == b'{"rid":"a","input_ids":[1,2],"max_new_tokens":3}\n'
    assert read(*map(encode_request, requests)) == requests


def test_a_result_is_one_line_with_the_fields_in_order_and_an_error_only_if_there_is_one() -> None:
    served = Result(
        rid="a", output_ids=[4, 5], finish_reason="length", cached_tokens=16, prompt_tokens=20, dp_rank=1
    )
    assert encode_result(served) == (
        b'{"rid":"a","output_ids":[4,5],"finish_reason":"length","cached_tokens":16,"prompt_tokens":20,"dp_rank":1}\n'
    )
    assert encode_result(refused(Request("a", [1, 2], 3), "too long", dp_rank=0)) == (
        b'{"rid":"a","output_ids":[],"finish_reason":"refused","error":"too long","cached_tokens":0,'
        b'"prompt_tokens":2,"dp_rank":0}\n'
    )
    (bad,) = read(b"{")
    assert isinstance(bad, BadLine)
    told = msgspec.json.decode(encode_result(refused(bad, str(bad))))
    assert (told["rid"], told["dp_rank"], told["prompt_tokens"]) == (None, None, 0)
