"""Pages of keys as letters: who shares a page of content shares a letter, and nothing else of the content is kept.

A journal has token ids or hashes; a schedule has letters, so that a fixture holds nobody's text and says at a glance
which prompts begin alike. `Letters` names what a journal has, `Alphabet` makes keys of the names: keys that share
exactly what the recorded ones share. Rule: letters are given out in the order of first appearance.
"""

from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from radixledger.cache.keys import KEY_MODES
from radixledger.journal.events import Config

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_FIRST_OTHER = 0x4E00
_SURROGATES = range(0xD800, 0xE000)
_LAST = 0x10FFFF


class TooManyPages(Exception):
    """There are more different pages of keys than there are letters."""


def letter(number: int) -> str:
    """Letter `number`, counted from 0: Latin ones first. Raises TooManyPages."""
    if number < len(_LETTERS):
        return _LETTERS[number]
    code = number - len(_LETTERS) + _FIRST_OTHER
    if code >= _SURROGATES.start:
        code += len(_SURROGATES)
    if code > _LAST:
        raise TooManyPages(f"{number} different pages of keys are more than can be told apart")
    return chr(code)


def respelled(texts: Iterable[str]) -> dict[str, str]:
    """Other letters for these, in the order of first appearance."""
    return {each: letter(number) for number, each in enumerate(dict.fromkeys("".join(texts)))}


class Letters:
    """Names pages of keys and namespaces as they turn up; `stride`: key bytes per page in the journal."""

    def __init__(self, stride: int) -> None:
        self._stride = stride
        self._pages: dict[bytes, str] = {}
        self._spaces: dict[bytes, str] = {b"": ""}
        self._count = 0

    def spelled(self, key: bytes) -> str:
        """A letter for each whole page of a key."""
        stride, pages = self._stride, self._pages
        parts = (key[at : at + stride] for at in range(0, len(key) // stride * stride, stride))
        return "".join([pages.get(part) or self._named(part) for part in parts])

    def fresh(self) -> str:
        """A letter that no page of the journal has."""
        self._count += 1
        return letter(self._count - 1)

    def space(self, namespace: bytes) -> str:
        """A name for a namespace; the nameless one has none."""
        return self._spaces.setdefault(namespace, f"space{len(self._spaces)}")

    def _named(self, part: bytes) -> str:
        self._pages[part] = found = self.fresh()
        return found


class Alphabet:
    """Makes the keys of a configuration of letters; `keys` are all that there will be.

    Pairs of tokens follow from each other, so all pages that ever stand behind one page begin with the same token.
    """

    def __init__(self, config: Config, keys: Iterable[str]) -> None:
        self._size = config.page_size
        self._mode = KEY_MODES[config.key_mode]
        self._first: dict[str, str] = {}
        self._numbers: dict[str, int] = {}
        self._letters: dict[bytes, str] = {}
        if self._mode.lookahead:
            for key in keys:
                for before, behind in pairwise(key):
                    self._first[self._root(behind)] = self._root("behind " + before)

    def key_of(self, key: str) -> bytes:
        """The key of these pages."""
        if not key:
            return b""
        tokens: list[int] = []
        for each in key:
            first = self._token(each) if self._mode.lookahead else ord(each)
            tokens += [first, *[ord(each)] * (self._size - 1)]
        if self._mode.lookahead:
            tokens.append(self._token("behind " + key[-1]))
        made = self._mode.key_of(np.array(tokens, np.int32))
        stride = self._mode.unit_bytes * self._size
        for place, each in enumerate(key):
            self._letters[made[place * stride : (place + 1) * stride]] = each
        return made

    def spelled(self, key: bytes) -> str:
        """The letters of a key that was made here; `?` for pages that were not."""
        stride = self._mode.unit_bytes * self._size
        return "".join([self._letters.get(key[at : at + stride], "?") for at in range(0, len(key), stride)])

    def _root(self, name: str) -> str:
        """Who stands for all that are the same token as `name`."""
        while (above := self._first.get(name, name)) != name:
            name = above
        return name

    def _token(self, name: str) -> int:
        root = self._root(name)
        return self._numbers.setdefault(root, _LAST + 1 + len(self._numbers))
