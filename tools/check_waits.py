"""Holds the tests to one place for time: ``python -m tools.check_waits``.

A limit in seconds that stands in a test is a bet on the machine.  ``tests/support/pace.py`` has the limits instead.
Small numbers may stand: they are for what ends by its limit on purpose.  Options of clients and brokers may, too: most
are short so that they expire.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

SMALL = 5
"""Seconds from which a number is a limit against hanging."""
WAITS = {
    *("abort_transaction", "acquire", "commit_transaction", "communicate", "create_connection", "exception", "flush"),
    *("init_transactions", "join", "result", "settimeout", "timeout", "wait"),
}
"""Calls whose last argument is their limit."""
KEYWORDS = {"timeout", "timeout_s"}
MANUAL = {"scene", "world"}
"""Names of what goes by the manual clock."""
LENGTHS = {
    "tests/scenario/test_error_matrix_transactional.py": "It goes by the manual clock.",
    "tests/soak/run.py": "How long a round of faults is.",
    "tests/package/uses.py": "Type checkers read it; it never runs.",
    "tests/support/pace.py": "The one place.",
}
"""Files with seconds that are no limit of a test, and why."""


def is_number(node: ast.expr, least: float = 0) -> bool:
    """Whether this is a number that stands in the source, of at least so much."""
    value = node.value if isinstance(node, ast.Constant) else None
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= least


def reads_clock(node: ast.expr) -> bool:
    """Whether this takes the time of the system's clock."""
    return "time.monotonic()" in ast.unparse(node)


def is_wait(node: ast.Call) -> bool:
    """Whether a call has a limit as a number."""
    called = node.func
    if isinstance(called, ast.Attribute) and ast.unparse(called.value).split(".")[0] in MANUAL:
        return False
    if any(keyword.arg in KEYWORDS and is_number(keyword.value, SMALL) for keyword in node.keywords):
        return True
    waits = isinstance(called, ast.Attribute) and called.attr in WAITS
    return waits and bool(node.args) and is_number(node.args[-1], SMALL)


def fault(node: ast.AST) -> str:
    """What is wrong with a node; empty if nothing is."""
    if isinstance(node, ast.Call) and is_wait(node):
        return "a wait has a limit of its own"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and reads_clock(node.left):
        return "a deadline is a number of seconds" if is_number(node.right) else ""
    if isinstance(node, ast.Compare) and reads_clock(node.left) and isinstance(node.ops[0], ast.Lt | ast.LtE):
        return "what may take so long is a number of seconds" if is_number(node.comparators[0]) else ""
    if isinstance(node, ast.Assign) and is_number(node.value, SMALL):
        return "a number of seconds has a name" if ast.unparse(node.targets[0]).endswith("_S") else ""
    return ""


def complaints(source: str, file: str) -> Iterator[str]:
    """Every limit in seconds of one file of tests."""
    for node in ast.walk(ast.parse(source)):
        if found := fault(node):
            yield f"{file}:{getattr(node, 'lineno', 0)}: {found}; tests/support/pace.py has HANG_S, until and within"


def check(root: Path) -> list[str]:
    """Every line of complaint about the tests at ``root``."""
    found: list[str] = []
    for path in sorted((root / "tests").rglob("*.py")):
        file = str(path.relative_to(root))
        if file not in LENGTHS:
            found += complaints(path.read_text(encoding="utf-8"), file)
    return found


def main() -> int:
    found = check(Path(__file__).parents[1])
    print("\n".join(found) if found else "waits: every test has its time from tests/support/pace.py")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
