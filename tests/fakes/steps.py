"""A handler that comes at each single step of a call, where a signal's handler or a finaliser could come.

Signal handlers run between two instructions of interpreted Python, where the interpreter looks for them: at the begin
of a function, after a call, and where a loop begins anew.  Those are the steps.  Compiled modules have none, and in the
interpreted form theirs are left out: what this says holds for the product, whichever form tells it.
"""

from __future__ import annotations

import ast
import gc
import sys
import threading
import traceback
from collections.abc import Callable
from dis import opname
from functools import cache, partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import forebay
from tests.support.pace import HANG_S

PACKAGE = Path(forebay.__file__).parent
WHERE_IT_LOOKS = {"RESUME", "CALL", "CALL_KW", "CALL_FUNCTION_EX", "JUMP_BACKWARD"}
"""The instructions after which the interpreter looks for signals."""


@cache
def compiled_files() -> frozenset[str]:
    """The sources of what is C when compiled: the modules that the build compiles, and the twins of a .pxd."""
    twins = {str(path.with_suffix(".py")) for path in PACKAGE.rglob("*.pxd")}
    tree = ast.parse((PACKAGE.parents[1] / "setup.py").read_text())
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "COMPILED":
            names = ast.literal_eval(node.value)
            return frozenset(twins | {str(PACKAGE / f"{name.replace('.', '/')}.py") for name in names})
    raise AssertionError("setup.py has no COMPILED")


@cache
def has_steps(file: str) -> bool:
    """Whether Python's instructions in this file are steps: the package's, and those of what it locks with."""
    ours = Path(file).is_relative_to(PACKAGE) and not Path(file).is_relative_to(PACKAGE / "testing")
    return (ours and file not in compiled_files()) or file == threading.__file__


def at_step(
    number: int,
    call: Callable[[], Any],
    handler: Callable[[], object],
    is_step: Callable[[str], bool] = has_steps,
) -> bool:
    """Makes ``call``, and ``handler`` at the step ``number`` of it; whether it has so many.

    A step counts when it comes for the first time: the next round of a loop is no other one.

    Args:
        handler: may raise, as Ctrl-C does.
        is_step: whether instructions in this file count.
    """
    seen: set[tuple[CodeType, int]] = set()
    before: dict[int, str] = {}  # by the number of the frame, which must not live on here
    done = False

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal done
        if event == "call":
            frame.f_trace = trace  # first: else Python 3.13 takes no notice of the next line
            frame.f_trace_opcodes = is_step(frame.f_code.co_filename)
            frame.f_trace_lines = False
            before[id(frame)] = "RESUME"  # which is not told of itself
        elif event == "opcode" and not done:
            looked = before.get(id(frame)) in WHERE_IT_LOOKS
            before[id(frame)] = opname[frame.f_code.co_code[frame.f_lasti]]
            if looked:
                seen.add((frame.f_code, frame.f_lasti))
            if len(seen) > number:
                done = True
                handler()
        return trace

    old, collects = sys.gettrace(), gc.isenabled()
    gc.disable()  # what other tests left behind has no steps here
    sys._getframe().f_trace_opcodes = True  # Python 3.12 tells of instructions only if a frame asked for them before
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(old)
        if collects:
            gc.enable()
    return done


def within_time(call: Callable[[], Any], what: str) -> Any:
    """What ``call`` returns or raises, on a thread of its own; fails, and says where it is stuck, if it never ends."""
    outcome: list[tuple[bool, Any]] = []

    def run() -> None:
        try:
            outcome.append((True, call()))
        except BaseException as error:  # noqa: BLE001 - raised again below
            outcome.append((False, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(HANG_S)
    if thread.is_alive():
        where = "".join(traceback.format_stack(sys._current_frames()[thread.ident or 0]))
        raise AssertionError(f"{what} does not end; it is here:\n{where}")
    done, value = outcome[0]
    if not done:
        raise value
    return value


def each_step(attempt: Callable[[int], bool], what: str) -> int:
    """``attempt(0)``, ``attempt(1)`` and so on while it says that there was such a step; how many there were."""
    number = 0
    while within_time(partial(attempt, number), f"{what}, at step {number},"):
        number += 1
    return number
