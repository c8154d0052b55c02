"""How a page of this house reads, as far as a program can tell.

The ratchet: `LARGEST` records the longest file and the longest function of each package. A number
may be lowered and never raised; what wants to grow past it becomes two.
"""

import ast
import re
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGES = ("journal", "cache", "replay", "analytics", "tools")


class Size(NamedTuple):
    """Lines of the longest file, docstrings and all, and of the longest function without its docstring."""

    file: int
    function: int


LARGEST = {
    "journal": Size(file=304, function=35),
    "cache": Size(file=394, function=46),
    "replay": Size(file=267, function=35),
    "analytics": Size(file=319, function=25),
    "tools": Size(file=388, function=48),
    "tests": Size(file=393, function=39),
}
ONE_CHAPTER = {"tests/journal/events_sample.py": 460}
"""Files with a record of their own: a sample of every event is read as a table."""

MEDIAN_FUNCTION_LINES = 15

INSTEAD = {
    "block": "page",
    "blocks": "pages",
    "indices": "slots",
    "loc": "slot",
    "locs": "slots",
    "idx": "slot, place or the thing itself",
    "refcount": "lock",
    "pin": "lock",
    "unpin": "unlock",
    "checkpoint": "snapshot",
    "backend": "route",
    "cnt": "count",
    "tmp": "the thing itself",
}
"""Words that have no meaning here, or somebody else's, and the word to use."""

NAMES_OF_NOTHING = {"util", "utils", "helper", "helpers", "manager", "common", "base", "misc"}
"""What a module or a class is called when nobody knows its one job."""

FOREIGN_WORDS = {
    "tools/streams.py": {"block", "blocks"},  # a Mooncake trace names its prompts by blocks of 512 tokens
    "cache/prefix_cache.py": {"base", "idx", "indices"},  # the faces keep the names that servers call
    "cache/faces/allocator.py": {"indices"},
    "cache/faces/pool_allocator.py": {"indices", "loc"},
    "cache/faces/request_rows.py": {"idx", "indices"},
    "cache/faces/radix_face.py": {"indices"},
    "replay/export/kv_wire.py": {"block", "blocks"},
    "replay/export/kv_events.py": {"block", "blocks"},  # the words of the wire form that routers read
    "journal/": {"block", "blocks"},  # the compressed blocks of a sealed segment; pages are not meant there
    "tools/serve/": {"checkpoint", "backend"},  # a model's weights are a checkpoint, JAX has backends
}
"""Where a word is the term of the thing being spoken to."""

CLOCKS_AND_CHANCE = {"time", "datetime", "random", "secrets", "uuid"}
CLOCKLESS = ("cache/", "journal/events.py", "journal/codec.py")

PROMISES = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
TICKETS = re.compile(r"(?:\b(?:issue|ticket|GH-?|PR)s?\s*|(?<![\w&])#)\d+\b", re.IGNORECASE)
SOMEBODYS_MACHINE = re.compile(r"(?<![\w.~/-])/(?:home|Users|root|work)/\w")


def modules(folder: str) -> Iterator[Path]:
    return (path for path in sorted((ROOT / folder).rglob("*.py")) if path.stat().st_size)


def texts() -> Iterator[Path]:
    """Every file that a person wrote: code, SQL, prose and the build's own."""
    for folder in (*PACKAGES, "tests", "docs", ".ci"):
        kept = {".py", ".sql", ".md", ".txt", ".json", ".html", ".css", ".js", ""}
        yield from (
            path for path in sorted((ROOT / folder).rglob("*")) if path.is_file() and path.suffix in kept
        )
    yield from (
        ROOT / name for name in ("README.md", "CHANGELOG.md", "Makefile", "pyproject.toml", ".gitignore")
    )


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Each function of a module with its lines, without decorators and docstring."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if ast.get_docstring(node, clean=False) is not None:
                lines -= (node.body[0].end_lineno or 0) - node.body[0].lineno + 1
            yield node.name, lines


def names_defined(path: Path) -> Iterator[tuple[int, str]]:
    """The names that a module chooses itself; what it calls was named by others."""
    for node in ast.walk(tree_of(path)):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case (
                ast.arg(arg=name)
                | ast.Name(id=name, ctx=ast.Store())
                | ast.Attribute(attr=name, ctx=ast.Store())
            ):
                yield node.lineno, name
            case _:
                pass


def words(name: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def lines_matching(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{name_of(path)}:{number}: {line.strip()}"
        for path in texts()
        if path != Path(__file__)
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if pattern.search(line)
    ]


def test_no_file_and_no_function_outgrows_its_record() -> None:
    grown = []
    for folder, largest in LARGEST.items():
        for path in modules(folder):
            lines = len(path.read_text("utf-8").splitlines())
            record = ONE_CHAPTER.get(name_of(path), largest.file)
            if lines > record:
                grown.append(f"{name_of(path)} has {lines} lines, the record is {record}")
            for name, length in functions(path):
                if length > largest.function:
                    grown.append(
                        f"{name_of(path)}:{name} has {length} lines, the record is {largest.function}"
                    )
    assert grown == []


def test_functions_are_short_by_nature() -> None:
    for folder in PACKAGES:
        lengths = [length for path in modules(folder) for _, length in functions(path)]
        assert not lengths or statistics.median(lengths) < MEDIAN_FUNCTION_LINES, folder


def test_a_module_opens_with_what_it_is() -> None:
    silent = [
        name_of(path)
        for folder in LARGEST
        for path in modules(folder)
        if not ast.get_docstring(tree_of(path))
    ]
    assert silent == []


def test_a_query_opens_with_its_help() -> None:
    queries = sorted((ROOT / "analytics" / "sql").glob("*.sql"))
    assert [name_of(path) for path in queries if not path.read_text("utf-8").startswith("-- ")] == []


def test_a_word_has_one_meaning() -> None:
    wrong = [
        f"{name_of(path)}:{line}: {name}: say {INSTEAD[word]} instead of {word}"
        for folder in PACKAGES
        for path in modules(folder)
        for line, name in names_defined(path)
        for word in sorted(words(name) & INSTEAD.keys() - foreign_words(path))
    ]
    assert wrong == []


def test_modules_and_classes_are_named_for_their_job() -> None:
    wrong = [
        f"{name_of(path)}: {name}"
        for folder in LARGEST
        for path in modules(folder)
        for name in (
            path.stem,
            *(node.name for node in ast.walk(tree_of(path)) if isinstance(node, ast.ClassDef)),
        )
        if words(name) & NAMES_OF_NOTHING - foreign_words(path)
    ]
    assert wrong == []


def foreign_words(path: Path) -> set[str]:
    return {
        word
        for where, allowed in FOREIGN_WORDS.items()
        if name_of(path).startswith(where)
        for word in allowed
    }


def test_no_clock_and_no_chance_where_replay_must_come_out_the_same() -> None:
    found = [
        f"{name_of(path)} imports {module}"
        for folder in PACKAGES
        for path in modules(folder)
        if name_of(path).startswith(CLOCKLESS)
        for module in sorted(imports(path) & CLOCKS_AND_CHANCE)
    ]
    assert found == []


def imports(path: Path) -> set[str]:
    """The top-level names of what a module imports, wherever in the file it does so."""
    found = set()
    for node in ast.walk(tree_of(path)):
        match node:
            case ast.Import(names=names):
                found |= {alias.name.partition(".")[0] for alias in names}
            case ast.ImportFrom(module=str(module), level=0):
                found.add(module.partition(".")[0])
            case _:
                pass
    return found


def test_nothing_is_promised_for_later() -> None:
    assert lines_matching(PROMISES) == []


def test_no_line_needs_a_ticket_to_be_understood() -> None:
    assert lines_matching(TICKETS) == []


def test_no_line_knows_the_machine_it_was_written_on() -> None:
    assert lines_matching(SOMEBODYS_MACHINE) == []


def test_the_checks_of_this_page_can_fail(tmp_path: Path) -> None:
    sample = tmp_path / "sample.py"
    sample.write_text(
        "import time as t\ndef f(blockSize, tmp_pages):\n    '''Two\n    lines.'''\n    x.loc = 1\n"
    )
    assert list(functions(sample)) == [("f", 2)]
    assert {word for _, name in names_defined(sample) for word in words(name) & INSTEAD.keys()} == {
        "block",
        "tmp",
        "loc",
    }
    assert imports(sample) == {"time"}
    assert PROMISES.search("# TODO: later")
    assert [bool(TICKETS.search(text)) for text in ("see #12", "issue 7", "row R90, &#12;, the issue")] == [
        True,
        True,
        False,
    ]
    assert [bool(SOMEBODYS_MACHINE.search(text)) for text in ("at /home/ada/run", "a/work/b ~/work/x")] == [
        True,
        False,
    ]
