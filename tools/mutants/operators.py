"""The small changes that make a mutant, each a change of text in one line, so that all other lines stay where they are.

Comparisons are negated or moved by one, ``and`` and ``or`` swapped, ``not`` removed, conditions negated, arithmetic
swapped, whole numbers made larger by one, truth values swapped, calls and assignments deleted, returned values changed,
``break`` and ``continue`` swapped.
"""

from __future__ import annotations

import ast
import builtins
import io
import tokenize
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from tools.mutants.places import Place, places

NEGATED: dict[type[ast.AST], str] = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Lt: ">=",
    ast.LtE: ">",
    ast.Gt: "<=",
    ast.GtE: "<",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
SHIFTED: dict[type[ast.AST], str] = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}
ARITHMETIC: dict[type[ast.AST], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "//"),
    ast.FloorDiv: ("//", "*"),
    ast.Div: ("/", "*"),
    ast.Mod: ("%", "*"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.BitXor: ("^", "&"),
}
COMPARISONS = {"==", "!=", "<", "<=", ">", ">=", "is", "not", "in"}

Position = tuple[int, int]
"""Line from 1 and column from 0, in characters."""


class Change(NamedTuple):
    """One change of one line."""

    line: int
    start: int
    end: int
    """Columns, in characters."""
    operator: str
    before: str
    after: str
    place: Place

    def applied(self, text: str) -> str:
        """The text of the module with this change."""
        lines = text.split("\n")
        line = lines[self.line - 1]
        lines[self.line - 1] = line[: self.start] + self.after + line[self.end :]
        return "\n".join(lines)

    def is_real(self, text: str) -> bool:
        """Whether it makes another program that Python can read."""
        try:
            changed = ast.parse(self.applied(text))
        except SyntaxError:
            return False
        return ast.dump(changed) != ast.dump(ast.parse(text))


def changes(text: str) -> list[Change]:
    """Every change that a module's text allows."""
    return list(Changer(text).all())


class Changer:
    """Finds the changes of one module."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._tree = ast.parse(text)
        self._tokens = [
            token
            for token in tokenize.generate_tokens(io.StringIO(text).readline)
            if token.type in (tokenize.OP, tokenize.NAME)
        ]
        self._starts = [token.start for token in self._tokens]

    def all(self) -> Iterator[Change]:
        for place in places(self._tree):
            yield from self._of(place)

    def _of(self, place: Place) -> Iterator[Change]:
        node = place.node
        if isinstance(node, ast.Compare):
            yield from self._comparison(node, place)
        elif isinstance(node, ast.BoolOp):
            yield from self._and_or(node, place)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield from self._swap(place, "not removed", self._start(node), self._start(node.operand), {"not": ""})
        elif isinstance(node, ast.BinOp) and not _is_about_types(node):
            before, after = ARITHMETIC.get(type(node.op), ("", ""))
            yield from self._swap(place, "arithmetic", self._end(node.left), self._start(node.right), {before: after})
        elif isinstance(node, ast.Constant):
            yield from self._constant(node, place)
        elif isinstance(node, ast.If | ast.While):
            yield from self._condition(node.test, place)
        elif isinstance(node, ast.stmt):
            yield from self._statement(node, place)

    def _comparison(self, node: ast.Compare, place: Place) -> Iterator[Change]:
        left = node.left
        for kind, right in zip(node.ops, node.comparators, strict=True):
            found = [token for token in self._between(self._end(left), self._start(right)) if token in COMPARISONS]
            words = " ".join(found)
            limits = self._end(left), self._start(right)
            yield from self._swap(place, "comparison negated", *limits, {words: NEGATED[type(kind)]})
            if type(kind) in SHIFTED:
                yield from self._swap(place, "boundary shifted", *limits, {words: SHIFTED[type(kind)]})
            left = right

    def _and_or(self, node: ast.BoolOp, place: Place) -> Iterator[Change]:
        for left, right in zip(node.values, node.values[1:], strict=False):
            limits = self._end(left), self._start(right)
            yield from self._swap(place, "and/or", *limits, {"and": "or", "or": "and"})

    def _constant(self, node: ast.Constant, place: Place) -> Iterator[Change]:
        if isinstance(node.value, bool):
            yield from self._whole(node, place, "truth value", str(not node.value))
        elif isinstance(node.value, int):
            yield from self._whole(node, place, "number", str(node.value + 1))

    def _condition(self, test: ast.expr, place: Place) -> Iterator[Change]:
        # The others have operators of their own, which do the same.
        if not isinstance(test, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.Constant):
            yield from self._whole(test, place, "condition negated", f"not ({self._text(test)})")

    def _statement(self, node: ast.stmt, place: Place) -> Iterator[Change]:
        if isinstance(node, ast.Return) and node.value is not None:
            if not (isinstance(node.value, ast.Constant) and node.value.value is None):
                yield from self._whole(node.value, place, "return", "None")
            if isinstance(node.value, ast.Compare | ast.BoolOp | ast.UnaryOp):
                yield from self._whole(node.value, place, "return negated", f"not ({self._text(node.value)})")
        elif isinstance(node, ast.Break):
            yield from self._whole(node, place, "loop", "continue")
        elif isinstance(node, ast.Continue):
            yield from self._whole(node, place, "loop", "break")
        elif isinstance(node, ast.AugAssign):
            before, after = ARITHMETIC.get(type(node.op), ("", ""))
            limits = self._end(node.target), self._start(node.value)
            yield from self._swap(place, "arithmetic", *limits, {f"{before}=": f"{after}="})
        if not place.at_import and _may_be_deleted(node, place.makes_fields):
            yield from self._whole(node, place, "deleted", "pass")

    def _whole(self, node: ast.expr | ast.stmt, place: Place, operator: str, after: str) -> Iterator[Change]:
        """The change of a node's text; none if it has more than one line."""
        (line, start), (last, end) = self._start(node), self._end(node)
        if line == last:
            yield Change(line, start, end, operator, self._lines[line - 1][start:end], after, place)

    def _swap(
        self, place: Place, operator: str, begin: Position, end: Position, words: dict[str, str]
    ) -> Iterator[Change]:
        """The change of the one word of ``words`` that stands between two positions; ``is not`` counts as a word."""
        tokens = self._tokens[bisect_left(self._starts, begin) : bisect_left(self._starts, end)]
        for before, after in words.items():
            wanted = before.split()
            for at in range(len(tokens) if wanted else 0):
                run = tokens[at : at + len(wanted)]
                (line, start), (last, stop) = run[0].start, run[-1].end
                if [token.string for token in run] == wanted and line == last:
                    stop += not after and self._lines[line - 1][stop : stop + 1] == " "
                    yield Change(line, start, stop, operator, before, after, place)
                    return

    def _between(self, begin: Position, end: Position) -> list[str]:
        first, last = bisect_left(self._starts, begin), bisect_left(self._starts, end)
        return [token.string for token in self._tokens[first:last]]

    def _start(self, node: ast.expr | ast.stmt) -> Position:
        return self._position(node.lineno, node.col_offset)

    def _end(self, node: ast.expr | ast.stmt) -> Position:
        return self._position(node.end_lineno or node.lineno, node.end_col_offset or 0)

    def _position(self, line: int, octets: int) -> Position:
        # The tree counts bytes, everything else characters.
        return line, len(self._lines[line - 1].encode()[:octets].decode())

    def _text(self, node: ast.expr) -> str:
        (line, start), (_, end) = self._start(node), self._end(node)
        return self._lines[line - 1][start:end]


def _is_about_types(node: ast.BinOp) -> bool:
    """Whether it joins types or texts: the change would be an error of its own, which every test finds."""
    for side in (node.left, node.right):
        if isinstance(side, ast.JoinedStr) or (
            isinstance(side, ast.Constant) and not isinstance(side.value, int | float)
        ):
            return True
        name = ast.unparse(side).rpartition(".")[2] if isinstance(node.op, ast.BitOr) else ""
        # Of the package's own names constants are in capitals throughout, classes are not.
        if isinstance(getattr(builtins, name, None), type) or (name[:1].isupper() and not name.isupper()):
            return True
    return False


def _may_be_deleted(node: ast.stmt, makes_fields: bool) -> bool:
    """A call, or an assignment; without that of a local name, or of a new field, its users fail, which says nothing."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call | ast.Await)
    if isinstance(node, ast.AugAssign):
        return True
    if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None or makes_fields:
        return False
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    stored = (inner for target in targets for inner in ast.walk(target) if isinstance(inner, ast.Name))
    return not any(isinstance(name.ctx, ast.Store) for name in stored)
