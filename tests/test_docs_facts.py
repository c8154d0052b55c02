"""What the docs say beside their examples, held against the code: links, layouts, lists and options.

Rule: a fact that stands in two places is compared; what can be made is made, and compared with what was made.
"""

import re
import struct
import zlib
from hashlib import blake2b
from pathlib import Path

import click
import msgspec
import numpy as np

from radixledger.cache.keys import raw_key
from radixledger.cache.rank import RankCache
from radixledger.journal.events import Config, Opened
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Rank, TokenCount
from radixledger.journal.writer import JournalWriter
from radixledger.tools.cli import radixledger

from .sql_page import MARK, PATH, generated

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]


def text(name: str) -> str:
    return (DOCS / name).read_text("utf-8")


def anchors(page: str) -> set[str]:
    """The places of a page that a link can name, as GitHub names them."""
    heads = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def test_every_link_leads_somewhere() -> None:
    dead = []
    for document in DOCUMENTS:
        for target in re.findall(r"\]\(([^)]+)\)", document.read_text("utf-8")):
            name, _, place = target.partition("#")
            if "://" in target:
                continue
            page = document.parent / name if name else document
            if not page.exists() or (place and place not in anchors(page.read_text("utf-8"))):
                dead.append(f"{document.name}: {target}")
    assert dead == []


def test_a_link_to_nowhere_would_be_noticed() -> None:
    assert "after-a-crash" in anchors("## After a crash\n")
    assert anchors("### `serve`, and more\n") == {"serve-and-more"}


def test_a_key_file_is_explained_where_a_reader_first_makes_one() -> None:
    """The first run of the README leaves one beside itself."""
    readme = (ROOT / "README.md").read_text("utf-8")
    section = readme[readme.index("--journal served") : readme.index("## Triage with it")]
    assert "`served.redaction.key` beside it is the secret with which the prompts in it are hashed" in section


def layout(section: str, first: str) -> list[tuple[int, int]]:
    """Offsets and sizes of the table in a section of `journal-format.md` whose first row names `first`."""
    page = text("journal-format.md").partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\d+) \| (\d+) \| (.+) \|$", page, re.MULTILINE)
    assert first in rows[0][2], section
    return [(int(offset), int(size)) for offset, size, _ in rows]


def test_the_layouts_of_the_format_page_leave_no_byte_out() -> None:
    for section, magic, size in (
        ("A segment", "RLEDGER", 24),
        ("A frame", "RLFR", 64),
        ("A sealed segment", "RLBK", 80),
    ):
        at = 0
        for offset, width in layout(section, magic):
            assert offset == at, section
            at += width
        assert at == size, section


def written(run: Path) -> list[object]:
    """A run with a snapshot, closed and so sealed; its events, as a list of tag and fields."""
    config = Config(page_size=16, full_pages=64, swa_pages=32, window_tokens=32)
    opened = Opened("run", Rank(0), 1, 0, "unified", config, TokenCount(32), 64, "plain")
    writer = JournalWriter.open(run, opened, clock=lambda: 7_000)
    cache = RankCache(writer.opened, writer)
    for number in range(40):
        request = cache.admit(f"r{number}", raw_key(range(number, 300)), 300 - number).request
        cache.extend(np.array([request]), np.array([300 - number - cached(cache, request)], np.int32))
        cache.finish(request, None)
    cache.snapshot()
    cache.close()
    frames = JournalReader(run, Rank(0)).frames()
    return [
        msgspec.msgpack.decode(msgspec.msgpack.encode(event)) for frame in frames for event in frame.events
    ]


def cached(cache: RankCache, request: int) -> int:
    return int(cache.state.rows.length[cache.state.row_of(request)])


def test_a_sealed_segment_is_what_the_format_page_says(tmp_path: Path) -> None:
    """J7: read with `struct` and zlib alone, by the words of the page."""
    events = written(tmp_path / "run")
    data = (tmp_path / "run" / "rank-0000" / f"{1:020d}.sealed").read_bytes()
    magic, version, form, size, body_crc, crc = struct.unpack_from("<8sHHIII", data)
    assert (magic, version, form) == (b"RLEDGER\n", 1, 2)
    assert (crc, body_crc) == (zlib.crc32(data[:20]), zlib.crc32(data[24 : 24 + size]))
    chain = msgspec.msgpack.decode(data[24 : 24 + size])[4]
    offset, offset_crc, end = struct.unpack("<QI4s", data[-16:])
    assert (offset_crc, end) == (zlib.crc32(data[-16:-8]), b"RLED")
    at, found, numbers = 24 + size, list[object](), 0
    while at < offset:
        header = struct.unpack_from("<4sIIIIIQQq16s16s", data, at)
        packed = data[at + 80 : at + 80 + header[3]]
        raw = zlib.decompress(packed)
        assert header[:3] == (b"RLBK", zlib.crc32(data[at + 8 : at + 80]), zlib.crc32(packed))
        assert (header[4], header[6]) == (len(raw), numbers + 1)
        assert header[10] == blake2b(chain + header[9] + raw, digest_size=16).digest()
        found += bodies(raw, header[5])
        at, numbers, chain = at + 80 + header[3], numbers + header[7], header[9]
    assert found == events
    magic, size, crc = struct.unpack_from("<4sII", data, offset)
    footer = data[offset + 12 : -16]
    assert (magic, size, crc) == (b"RLFT", len(footer), zlib.crc32(footer))
    told = msgspec.msgpack.decode(footer)
    assert (told[0], told[1], told[2], len(told[10]) % 24) == (len(events) + 1, chain, len(events), 0)


def bodies(raw: bytes, frames: int) -> list[object]:
    """The events in the unpacked bytes of a block."""
    sizes = np.frombuffer(raw[8 * frames : 12 * frames], np.uint8).reshape(4, frames).T.copy().view("<u4")
    times = np.frombuffer(raw[12 * frames : 20 * frames], np.uint8).reshape(8, frames).T.copy().view("<i8")
    assert set(np.cumsum(times).tolist()) == {7_000}
    found, at = list[object](), 28 * frames
    for size in sizes.ravel().tolist():
        found += msgspec.msgpack.decode(raw[at : at + size])
        at += size
    assert at == len(raw)
    return found


def test_a_snapshot_is_what_the_format_page_says(tmp_path: Path) -> None:
    """J12: as above."""
    written(tmp_path / "run")
    path = next((tmp_path / "run" / "rank-0000").glob("*.snap"))
    data = path.read_bytes()
    magic, version, crc, size = struct.unpack_from("<8sIII", data)
    assert (magic, version, crc) == (b"RLSNAP\r\n", 1, zlib.crc32(data[8:12] + data[20 : 20 + size]))
    head = msgspec.msgpack.decode(data[20 : 20 + size])
    packed = data[20 + size :]
    image = zlib.decompress(packed)
    assert (head[3], head[8], head[9]) == (int(path.stem), len(image), zlib.crc32(packed))


def test_the_tables_and_questions_of_the_sql_page_are_those_that_there_are() -> None:
    mark, tail = PATH.read_text("utf-8").partition(MARK)[1:]
    assert mark == MARK
    assert tail == generated(), "run `python -m tests.sql_page` to bring docs/sql.md up to date"


def test_the_serving_page_names_every_option_of_serve() -> None:
    command = radixledger.get_command(click.Context(radixledger), "serve")
    assert command is not None
    page = text("serving.md")
    options = {
        name
        for option in command.params
        if isinstance(option, click.Option)
        for name in (*option.opts, *option.secondary_opts)
        if name.startswith("--")
    }
    assert {option for option in options if option not in page} == set()
    named = set(re.findall(r"`(--[a-z-]+)", page.partition("\n## Options\n")[2].partition("\n## ")[0]))
    assert named - options == set()
