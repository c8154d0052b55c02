"""What leaves the process in place of token ids, and the key that it depends on."""

import hashlib
import stat
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from radixledger.journal.errors import KeyFileRefused
from radixledger.journal.events import Admitted, Finished, GroupOpened, Matched, Transferred
from radixledger.journal.redact import (
    Redactor,
    default_key_path,
    key_id,
    load_key,
    load_or_create_key,
)
from radixledger.journal.units import ROOT, RequestId, TokenCount

from .events_sample import opened

KEY = bytes(range(32))
WORDS = st.integers(0, 2**32 - 1)


def packed(words: list[int]) -> bytes:
    return np.array(words, "<u4").tobytes()


def hash_by_hand(key: bytes, page: list[int]) -> bytes:
    """The page hash in Python's own integers."""
    secret = hashlib.shake_256(b"page" + key).digest(8 * len(page) + 16)
    numbers = [int.from_bytes(secret[at : at + 8], "little") for at in range(0, len(secret), 8)]
    *factors, offset, mix = numbers
    total = (sum(f * w for f, w in zip(factors, page, strict=True)) + offset) % 2**64
    total ^= total >> 32
    return (total * (mix | 1) % 2**64).to_bytes(8, "little")


@given(st.lists(st.lists(WORDS, min_size=4, max_size=4), max_size=6))
def test_a_page_hash_is_the_multilinear_hash_of_the_page(pages: list[list[int]]) -> None:
    key = b"".join(map(packed, pages))
    assert Redactor(KEY, 16).page_hashes(key) == b"".join(hash_by_hand(KEY, page) for page in pages)


@given(st.lists(WORDS, min_size=8, max_size=8), st.integers(0, 4))
def test_a_key_cut_at_a_page_needs_no_rehash(words: list[int], cut: int) -> None:
    """J10: hashes are of a page's own content, so a split node's hashes are the two halves."""
    redactor = Redactor(KEY, 8)
    key = packed(words)
    assert redactor.page_hashes(key[: 8 * cut]) + redactor.page_hashes(
        key[8 * cut :]
    ) == redactor.page_hashes(key)


def test_pages_of_a_vocabulary_do_not_collide() -> None:
    tokens = np.arange(200_000, dtype="<i4")
    hashes = np.frombuffer(Redactor(KEY, 4).page_hashes(tokens.tobytes()), "<u8")
    assert len(np.unique(hashes)) == len(tokens)


def test_another_key_gives_other_hashes() -> None:
    page = packed([1, 2, 3, 4])
    assert Redactor(KEY, 16).page_hashes(page) != Redactor(KEY[::-1], 16).page_hashes(page)
    assert Redactor(KEY, 16).namespace_hash(b"a") != Redactor(KEY[::-1], 16).namespace_hash(b"a")
    assert key_id(KEY) != key_id(KEY[::-1])


def test_a_page_of_zeros_does_not_hash_to_zero() -> None:
    assert Redactor(KEY, 16).page_hashes(bytes(16)) != bytes(8)


def test_the_empty_namespace_stays_empty_and_others_become_eight_bytes() -> None:
    redactor = Redactor(KEY, 4)
    assert redactor.namespace_hash(b"") == b""
    assert len({redactor.namespace_hash(each) for each in (b"a", b"b", b"a" * 1000)} - {b""}) == 3
    assert len(redactor.namespace_hash(b"a")) == 8


def test_events_without_text_pass_as_they_are() -> None:
    redactor = Redactor(KEY, 4)
    untouched = GroupOpened()
    assert redactor.redact(untouched) is untouched
    plain = Matched("r", 1, 1, 1, 1, 0, 0)  # type: ignore[arg-type]
    assert redactor.redact(plain) is plain


def test_events_with_text_are_redacted_and_otherwise_equal() -> None:
    """J10."""
    redactor = Redactor(KEY, 4)
    hashed = redactor.namespace_hash(b"tenant")
    admitted = Admitted(1, "r", 5, 4, 0, b"tenant")  # type: ignore[arg-type]
    assert redactor.redact(admitted) == Admitted(1, "r", 5, 4, 0, hashed)  # type: ignore[arg-type]
    matched = Matched("r", 1, 1, 1, 1, 0, 0, b"tenant")  # type: ignore[arg-type]
    assert redactor.redact(matched) == Matched("r", 1, 1, 1, 1, 0, 0, hashed)  # type: ignore[arg-type]
    leaf = Transferred(1, 0, 3, b"word", b"page", b"", b"tenant")  # type: ignore[arg-type]
    told = Transferred(1, 0, 3, redactor.page_hashes(b"word"), b"page", b"", hashed)  # type: ignore[arg-type]
    assert redactor.redact(leaf) == told
    assert redactor.redact(opened(page_size=1)).stride == 8  # type: ignore[union-attr]


@pytest.mark.parametrize(("key", "stride"), [(b"short", 4), (KEY, 0), (KEY, 6), (KEY, -4)])
def test_a_key_or_a_stride_that_cannot_be_is_refused(key: bytes, stride: int) -> None:
    with pytest.raises(ValueError, match=r"32 bytes|int32"):
        Redactor(key, stride)


def test_half_a_page_is_refused() -> None:
    with pytest.raises(ValueError, match="reshape"):
        Redactor(KEY, 8).page_hashes(b"four")


def test_a_key_is_made_once_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "key"
    key = load_or_create_key(path)
    assert len(key) == 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert load_or_create_key(path) == load_key(path) == key
    assert [each.name for each in path.parent.iterdir()] == ["key"]


def test_several_at_once_get_the_same_key(tmp_path: Path) -> None:
    keys: list[bytes] = []
    ready = threading.Barrier(4)

    def load() -> None:
        ready.wait()
        keys.append(load_or_create_key(tmp_path / "key"))

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(keys) == 4
    assert len(set(keys)) == 1


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key"
    load_or_create_key(path)
    path.chmod(0o640)
    with pytest.raises(KeyFileRefused, match="0640") as refused:
        load_or_create_key(path)
    assert refused.value.path == path


@pytest.mark.parametrize("content", ["", "no hex", "00" * 31, "ä" * 64])
def test_a_file_that_holds_no_key_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "key"
    path.write_text(content, "utf-8")
    path.chmod(0o600)
    with pytest.raises(KeyFileRefused, match="64 hex digits"):
        load_key(path)


def test_the_key_lies_beside_the_run_and_not_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "run"
    assert default_key_path(run) == tmp_path / "run.redaction.key"
    run.mkdir()
    monkeypatch.chdir(run)
    assert default_key_path(Path()) == tmp_path / "run.redaction.key"


def test_a_key_that_no_tree_took_leaves_as_hashes() -> None:
    """J10: like the keys of nodes."""
    redactor = Redactor(KEY, 8)
    end = Finished(RequestId(65), TokenCount(5), TokenCount(0), ROOT, key=packed([1, 2, 3, 4]))
    told = redactor.redact(end)
    assert isinstance(told, Finished)
    assert told.key == redactor.page_hashes(end.key)
    nothing = Finished(RequestId(65), TokenCount(5), TokenCount(4), ROOT)
    assert redactor.redact(nothing) is nothing
