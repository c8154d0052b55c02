"""Keys and namespaces leave the process as keyed hashes: the pseudonymous form of a journal (J10, N18).

A page of a key becomes one 64-bit hash of the page's own content (not chained, so that a split needs
no rehash), a namespace becomes 8 bytes; the empty namespace stays empty. What this is: the text is
not in the file and cannot be read off it without the key, and runs that share a key can be joined.
What it is not: a shield against somebody who holds the key, or who knows enough prompts. Rule: the
redaction key never enters a run's folder; it lies beside it, mode 0600.

The page hash is multilinear: the int32 words of a page times secret 64-bit numbers, summed modulo 2^64,
then mixed once under the key. Two different pages collide with a chance of about 2^-46 or less for
token ids below 2^18, over the choice of the key.
"""

import hashlib
import os
import secrets
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from radixledger.journal.disk import naming
from radixledger.journal.errors import KeyFileRefused
from radixledger.journal.events import Admitted, AnyEvent, Finished, Matched, Opened, Transferred

KEY_BYTES = 32
HASH_BYTES = 8
"""Bytes per page of a redacted key: the stride that a hashed journal's `Opened` names."""

HASHED, PLAIN = "hashed", "plain"

_HALF = np.array(32, np.uint64)
"""An array, as the two secret numbers are: numpy takes longer to make one of a number than to use it."""


class Redactor:
    """Redacts events, keys and namespaces under one key; state images use the same two hash functions.

    `stride` is the live number of key bytes per page, a multiple of 4. Raises ValueError for another
    stride or for a key that is not 32 bytes long.
    """

    def __init__(self, key: bytes, stride: int) -> None:
        if len(key) != KEY_BYTES:
            raise ValueError(f"a redaction key has {KEY_BYTES} bytes, this one {len(key)}")
        if stride <= 0 or stride % 4:
            raise ValueError(
                f"a page of key bytes holds whole int32 words; a stride of {stride} bytes does not"
            )
        self.key_id = key_id(key)
        self.stride = stride
        self._key = key
        secret = np.frombuffer(hashlib.shake_256(b"page" + key).digest(2 * stride + 16), "<u8")
        self._factors = secret[: stride // 4]
        self._offset, self._mix = np.array(secret[-2]), np.array(secret[-1] | np.uint64(1))
        self.namespace_hash = lru_cache(maxsize=4096)(self._namespace_hash)
        self.by_type: dict[type, Callable[[Any], AnyEvent]] = {
            Opened: self._opened,
            Admitted: self._with_namespace,
            Finished: self._finished,
            Matched: self._with_namespace,
            Transferred: self._transferred,
        }

    def page_hashes(self, key: bytes) -> bytes:
        """8 bytes for each page of `key`, in order; about 30 µs for 32,768 tokens.

        Raises ValueError when `key` is not whole pages of `stride` bytes.
        """
        words: NDArray[np.uint32] = np.frombuffer(key, "<u4").reshape(-1, len(self._factors))
        hashes: NDArray[np.uint64] = np.dot(words, self._factors)
        hashes += self._offset
        hashes ^= hashes >> _HALF
        hashes *= self._mix
        return hashes.astype("<u8", copy=False).tobytes()

    def redact(self, event: AnyEvent) -> AnyEvent:
        """The event as it may leave the process; the same object where it holds no text."""
        redact = self.by_type.get(type(event))
        return event if redact is None else redact(event)

    def _namespace_hash(self, namespace: bytes) -> bytes:
        if not namespace:
            return b""
        return hashlib.blake2b(namespace, key=self._key, digest_size=HASH_BYTES, person=b"namespace").digest()

    def _opened(self, event: Opened) -> Opened:
        return replace(event, stride=HASH_BYTES)

    def _with_namespace(self, event: Admitted | Matched) -> AnyEvent:
        if not event.namespace:
            return event
        return replace(event, namespace=self.namespace_hash(event.namespace))

    def _finished(self, event: Finished) -> Finished:
        return replace(event, key=self.page_hashes(event.key)) if event.key else event

    def _transferred(self, event: Transferred) -> Transferred:
        namespace = self.namespace_hash(event.namespace)
        return replace(event, key=self.page_hashes(event.key), namespace=namespace)


def key_id(key: bytes) -> str:
    """The public name of a redaction key, by which runs that share one are found; 16 hex digits."""
    return hashlib.blake2b(b"", key=key, digest_size=8, person=b"key id").hexdigest()


def default_key_path(run: Path) -> Path:
    """`RUN.redaction.key`, beside the run's folder: whoever copies or packs the folder does not take the key."""
    run = spelled_out(run)
    return run.with_name(run.name + ".redaction.key")


def spelled_out(run: Path) -> Path:
    """The path of a run without `..`, which is no name; a link keeps its own."""
    return Path(os.path.abspath(run))  # noqa: PTH100 — `resolve` would follow links


def load_or_create_key(path: Path) -> bytes:
    """The redaction key in `path` (one line of 64 hex digits), made now with mode 0600 if there is none.

    Safe to call from several processes at once: all get the same key. Raises KeyFileRefused for a file that
    others can read or that holds no key, and OSError.
    """
    if not path.exists():
        _create_key(path)
    return load_key(path)


def load_key(path: Path) -> bytes:
    """The redaction key in `path`; raises KeyFileRefused as `load_or_create_key`, and FileNotFoundError."""
    mode = path.stat().st_mode & 0o777
    if mode & 0o077:
        raise KeyFileRefused(path, f"others can read this key (mode {mode:04o}); chmod 600 it")
    try:
        key = bytes.fromhex(path.read_text("ascii"))
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise KeyFileRefused(path, f"this is no redaction key: one line of {2 * KEY_BYTES} hex digits is")
    return key


def _create_key(path: Path) -> None:
    """Written aside and linked into place, so that nobody reads half a key and the first writer wins."""
    aside = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
    path.parent.mkdir(parents=True, exist_ok=True)
    fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with naming(path), os.fdopen(fd, "wb") as file:
            file.write(secrets.token_hex(KEY_BYTES).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        os.link(aside, path)
    except FileExistsError:
        pass
    finally:
        aside.unlink()
