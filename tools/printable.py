"""Text of a journal on somebody's terminal: request ids, labels and remarks are a stranger's, and stay text there.

Characters that a terminal obeys instead of showing them (escapes, the order of reading turned round) are spelled out. Rule 1: the
spelling is one that JSON reads back as it was. Rule 2: what goes to a file or a table of SQL is left alone.
"""

import codecs
import io
import sys

import click

_OBEYED = [
    *range(0x20),
    *range(0x7F, 0xA0),
    0x61C,
    0x200E,
    0x200F,
    *range(0x2028, 0x202F),
    *range(0x2066, 0x206A),
]
_IN_A_LINE = {code: f"\\x{code:02x}" if code < 0x20 else f"\\u{code:04x}" for code in _OBEYED} | {
    ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t",
}  # fmt: skip
_IN_LINES = {code: spelled for code, spelled in _IN_A_LINE.items() if chr(code) not in "\n\t"}


_FOR_PLAIN_STREAMS = (
    {
        "→": "->",
        "…": "...",
        "—": "-",
        "·": ".",
        "µ": "u",
        "│": "|",
        "├": "|",
        "└": "`",
    }
    | dict.fromkeys("─━╴", "-")
    | dict.fromkeys("█▉▊▋▌▍▎▏", "#")
)
"""Signs of ours that a stream may have no bytes for, and what says the same."""


def speak_as_the_streams_can() -> None:
    """Let stdout and stderr spell out what their encoding (LANG=C, PYTHONIOENCODING=ascii) has no bytes for, instead of failing."""
    codecs.register_error("radixledger-plain", _plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and codecs.lookup(stream.encoding).name != "utf-8":
            stream.reconfigure(errors="radixledger-plain")


def _plain(error: UnicodeError) -> tuple[str | bytes, int]:
    """Signs of ours in ASCII, everything else as JSON spells it, and back to `error` where it is about bytes."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    first, rest = error.object[error.start], error.start + 1
    if first in _FOR_PLAIN_STREAMS:
        return _FOR_PLAIN_STREAMS[first], rest
    units = first.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4)), rest


def printable(text: str) -> str:
    """Lines with nothing in them that a terminal obeys, but for their ends and tabs."""
    return text if text.isascii() and text.isprintable() else text.translate(_IN_LINES)


def in_a_line(text: str) -> str:
    """The same, and one line whatever it was."""
    return text if text.isascii() and text.isprintable() else text.translate(_IN_A_LINE)


def say(line: str = "") -> None:
    """A line on stdout, with the empty ones before and behind it that it begins and ends with."""
    body = line.strip("\n")
    click.echo(line.replace(body, in_a_line(body)) if body else line)


def say_lines(text: str | bytes, *, nl: bool = True) -> None:
    """Text that is lines already, or JSON, on stdout."""
    click.echo(printable(text if isinstance(text, str) else text.decode()), nl=nl)
