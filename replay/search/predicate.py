"""A question to a state, in a line: `full.free < 8 and request["r-17"].length > 4096`. Nothing but reading can be said in it.

The text is parsed as Python spells expressions and then compiled to look-ups in `KINDS`, name by name; it is never run as
Python. Rule 1: every name and type is checked before the first state is looked at. Rule 2: what does not exist is nothing:
`node[12]` alone asks whether there is such a node, a field of nothing is nothing, and a comparison with nothing is false.
"""

import ast
import operator
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from radixledger.cache.state import State
from radixledger.replay.search.state_view import FLAG, KINDS, NUMBER, STATE, TEXT, Kind

TEXT_LONGEST = 4096
DEEPEST = 40

Read = Callable[[State], Any]

_COMPARISONS: dict[type, Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip
_ARITHMETIC: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv, ast.Mod: operator.mod,
}  # fmt: skip


class BadPredicate(Exception):
    """A text that is no question to a state; the message says what was wrong and what could stand there."""

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(f"{text!r}: {reason}")
        self.text, self.reason = text, reason


class Predicate:
    """A compiled question: `holds(state)`, and `values(state)` for who wants to know why. Raises BadPredicate."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._leaves: dict[str, Read] = {}
        part = self._compiled(_parsed(text), 0)
        if part.kind == TEXT:
            raise BadPredicate(text, "it is a text, and neither true nor false: compare it with one")
        self._holds = part.read

    def __call__(self, state: State) -> str:
        """What `--predicate` bisects over: the values where it holds, empty where it does not."""
        return (self.values(state) or "it holds") if self.holds(state) else ""

    def holds(self, state: State) -> bool:
        """The answer, as of `state`."""
        return bool(self._holds(state))

    def values(self, state: State) -> str:
        """What the names in the text stand for, as of `state`."""
        told = ((text, read(state)) for text, read in self._leaves.items())
        return ", ".join(f"{text} = {_shown(value)}" for text, value in told)

    def _compiled(self, node: ast.expr, depth: int) -> "_Part":
        if depth > DEEPEST:
            raise BadPredicate(self.text, f"it is nested more than {DEEPEST} deep")
        down = depth + 1
        match node:
            case ast.Constant(value=bool() | int() | str()):
                return _constant(node.value)
            case ast.Name() | ast.Attribute() | ast.Subscript():
                part = self._path(node)  # first: what it unparses is not deep then
                self._leaves[ast.unparse(node)] = part.read
                return part
            case ast.BoolOp():
                told = [self._compiled(each, down).read for each in node.values]
                return _Part(_all(told) if isinstance(node.op, ast.And) else _any(told), FLAG)
            case ast.UnaryOp(op=ast.Not()):
                return _not(self._compiled(node.operand, down))
            case ast.UnaryOp(op=ast.USub()):
                return _negative(self._number(node.operand, down))
            case ast.BinOp() if type(node.op) in _ARITHMETIC:
                left, right = self._number(node.left, down), self._number(node.right, down)
                return _Part(_arithmetic(_ARITHMETIC[type(node.op)], left, right), NUMBER)
            case ast.Compare() if all(type(each) in _COMPARISONS for each in node.ops):
                parts = [self._compiled(each, down) for each in (node.left, *node.comparators)]
                return self._comparison(parts, node.ops)
            case _:
                raise BadPredicate(
                    self.text,
                    f"{ast.unparse(node)} cannot be asked; names of the state, numbers, texts, comparisons, + - * / // %,"
                    " and, or, not can",
                )

    def _number(self, node: ast.expr, depth: int) -> Read:
        part = self._compiled(node, depth)
        if part.kind != NUMBER:
            raise BadPredicate(self.text, f"{ast.unparse(node)} is a {part.kind}, and no number")
        return part.read

    def _comparison(self, parts: "list[_Part]", ops: list[ast.cmpop]) -> "_Part":
        pairs = list(zip(parts, ops, parts[1:], strict=False))
        for left, op, right in pairs:
            if left.kind != right.kind or left.kind in KINDS:
                raise BadPredicate(self.text, f"a {left.kind} and a {right.kind} cannot be compared")
            if left.kind != NUMBER and not isinstance(op, ast.Eq | ast.NotEq):
                raise BadPredicate(self.text, f"a {left.kind} has no order; == and != can be asked")
        return _Part(_all([_compare(_COMPARISONS[type(op)], a.read, b.read) for a, op, b in pairs]), FLAG)

    def _path(self, node: ast.expr) -> "_Part":
        """A name, a field of something, or one of many by its number or name."""
        if sum(1 for _ in ast.walk(node)) > 4 * DEEPEST:
            raise BadPredicate(self.text, f"a name has more than {DEEPEST} parts")
        match node:
            case ast.Name():
                return _field(_Part(_whole, STATE), self._kind(STATE, node), node.id, self.text)
            case ast.Attribute():
                of = self._path(node.value)
                return _field(of, self._kind(of.kind, node.value), node.attr, self.text)
            case ast.Subscript(value=many, slice=ast.Constant(value=int() | str() as key)):
                of = self._path(many)
                return _item(of, self._kind(of.kind, many), key, self.text)
            case _:
                raise BadPredicate(self.text, f"{ast.unparse(node)} is no name of the state")

    def _kind(self, kind: str, node: ast.expr) -> Kind:
        if kind not in KINDS:
            raise BadPredicate(self.text, f"{ast.unparse(node)} is a {kind}, and has no fields")
        return KINDS[kind]


class _Part(NamedTuple):
    """Something that can be read of a state, and the kind of what is read."""

    read: Read
    kind: str


def _parsed(text: str) -> ast.expr:
    if len(text) > TEXT_LONGEST:
        raise BadPredicate(f"{text[:40]}...", f"it is longer than {TEXT_LONGEST} characters")
    try:
        with warnings.catch_warnings(action="ignore"):  # about escapes in texts
            return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise BadPredicate(text, f"this is no expression: {getattr(error, 'msg', error)}") from None


def _whole(state: State) -> State:
    return state


def _constant(value: Any) -> _Part:
    return _Part(
        lambda _: value, FLAG if isinstance(value, bool) else NUMBER if isinstance(value, int) else TEXT
    )


def _field(of: _Part, kind: Kind, name: str, text: str) -> _Part:
    if name not in kind.fields:
        raise BadPredicate(text, f"a {of.kind} has no {name}; it has {', '.join(kind.fields)}")
    field, read = kind.fields[name], of.read

    def found(state: State) -> Any:
        thing = read(state)
        return None if thing is None else field.read(state, thing)

    return _Part(found, field.kind)


def _item(of: _Part, kind: Kind, key: int | str, text: str) -> _Part:
    item = kind.item
    if item is None or type(key) not in item.keys:
        allowed = "" if item is None else f": a {' or a '.join(_KEYS[each] for each in item.keys)} goes there"
        raise BadPredicate(text, f"[{key!r}] names none of {of.kind}{allowed}")
    read = of.read

    def found(state: State) -> Any:
        thing = read(state)
        return None if thing is None else item.read(state, thing, key)

    return _Part(found, item.kind)


_KEYS = {int: "number", str: "text"}


def _all(parts: list[Callable[[State], Any]]) -> Read:
    return lambda state: all(part(state) for part in parts)


def _any(parts: list[Callable[[State], Any]]) -> Read:
    return lambda state: any(part(state) for part in parts)


def _not(part: _Part) -> _Part:
    return _Part(lambda state: not part.read(state), FLAG)


def _negative(read: Read) -> _Part:
    return _Part(lambda state: None if (value := read(state)) is None else -value, NUMBER)


def _arithmetic(op: Callable[[Any, Any], Any], left: Read, right: Read) -> Read:
    def result(state: State) -> Any:
        a, b = left(state), right(state)
        if a is None or b is None:
            return None
        try:
            return op(a, b)
        except (ZeroDivisionError, OverflowError):
            return None

    return result


def _compare(op: Callable[[Any, Any], bool], left: Read, right: Read) -> Read:
    def result(state: State) -> bool:
        a, b = left(state), right(state)
        return a is not None and b is not None and op(a, b)

    return result


def _shown(value: Any) -> str:
    match value:
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
        case int() | float() | str():
            return repr(value)
        case _:
            return "is there"


def described() -> Iterator[tuple[str, str, str, str]]:
    """Every name that a predicate may use: of what, the name, the kind of what it gives, and what it means."""
    for of, kind in KINDS.items():
        for name, field in kind.fields.items():
            yield of, name, field.kind, field.help
        if kind.item is not None:
            yield of, f"[{' or '.join(_KEYS[key] for key in kind.item.keys)}]", kind.item.kind, kind.item.help
