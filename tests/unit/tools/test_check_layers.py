"""A cimport that goes up, or sideways, is named with its place; so is a struct that would leave C."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tools.check_layers import check, layers, structs_in_scope, structs_of_pxd

PROJECT = """
[[tool.importlinter.contracts]]
id = "layers"
layers = ["(_send)", "_pool | _net", "_codec"]
"""
FRONTENDS = """
[[tool.importlinter.contracts]]
id = "frontends"
source_modules = ["forebay._send"]
forbidden_modules = ["forebay._codec"]
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    package = tmp_path / "src" / "forebay"
    for folder in ("_pool", "_net"):
        (package / folder).mkdir(parents=True)
    return tmp_path


def write(tree: Path, name: str, text: str) -> None:
    (tree / "src" / "forebay" / name).write_text(text)


def both(module: str, name: str) -> str:
    return (
        f"import cython\nif cython.compiled:\n    from cython.cimports.forebay.{module} import {name}\n"
        f"else:\n    from forebay.{module} import {name}\n"
    )


def test_layers_are_read_from_the_import_contract(tree: Path) -> None:
    assert layers(tree / "pyproject.toml") == {"_send": (0, 0), "_pool": (1, 0), "_net": (1, 1), "_codec": (2, 0)}


def test_downwards_and_within_a_layer_is_fine(tree: Path) -> None:
    write(tree, "_pool/a.py", both("_codec.prim", "put"))
    write(tree, "_pool/b.pxd", "from forebay._pool.a cimport A\n\ncimport forebay._codec.prim\n")
    assert check(tree) == []


def test_upwards_is_refused_in_both_kinds_of_file(tree: Path) -> None:
    write(tree, "_codec.py", both("_pool.a", "A"))
    write(tree, "_net/c.pxd", "cimport cython\n\nfrom forebay._send.path cimport send\n")
    assert check(tree) == [
        "src/forebay/_codec.py:3: forebay._codec cimports forebay._pool.a, a layer above",
        "src/forebay/_net/c.pxd:3: forebay._net.c cimports forebay._send.path, a layer above",
    ]


def test_a_front_end_cimports_what_is_offered_alone(tree: Path) -> None:
    (tree / "pyproject.toml").write_text(PROJECT + FRONTENDS)
    write(tree, "_pool/front.pxd", "from forebay._codec.prim cimport put, View\n")
    write(tree, "_codec.pxd", "from forebay._pool.front cimport put\n")
    write(tree, "_send.pxd", "from forebay._pool.front cimport put\nfrom forebay._codec.prim cimport View\n")
    assert check(tree)[1:] == [
        "src/forebay/_send.pxd:2: forebay._send cimports forebay._codec.prim; let producer/_frontend.pxd offer it"
    ]


def test_a_struct_that_is_offered_by_another_file_is_one(tree: Path) -> None:
    write(tree, "_pool/prim.pxd", "cdef struct View:\n    int size\n")
    write(tree, "_pool/front.pxd", "from forebay._pool.prim cimport put, View\n")
    write(
        tree,
        "_send.py",
        "import cython\nfrom cython.cimports.forebay._pool.front import View\ndef take(view: View): ...\n",
    )
    assert check(tree) == ["src/forebay/_send.py:3: take takes the struct View but is not a @cython.cfunc"]


def test_sideways_is_refused(tree: Path) -> None:
    write(tree, "_net/c.pxd", "from forebay._pool.a cimport A\n")
    assert check(tree) == ["src/forebay/_net/c.pxd:1: forebay._net.c cimports forebay._pool.a, a sibling"]


def test_a_module_outside_the_list_is_refused(tree: Path) -> None:
    write(tree, "_net/c.pxd", "from forebay._utils cimport helper\n")
    (complaint,) = check(tree)
    assert "forebay._utils stands in no layer" in complaint


def test_what_only_the_compiled_branch_has_is_named(tree: Path) -> None:
    only = "import cython\nif cython.compiled:\n    from cython.cimports.forebay._codec.prim import put, get\n"
    write(tree, "_pool/a.py", only + "else:\n    from forebay._codec.prim import put\n")
    assert check(tree) == ["src/forebay/_pool/a.py:2: cimported but not in the interpreted branch: get"]


def test_c_headers_need_no_twin_by_name(tree: Path) -> None:
    text = "import cython\nif cython.compiled:\n    from cython.cimports.libc.string import memcpy\n"
    write(tree, "_pool/a.py", text)
    assert check(tree) == []


VIEW = "cdef struct View:\n    const unsigned char* key\n"
CFUNC = "@cython.cfunc\n"


def taking(tree: Path, functions: str, name: str = "_pool/a.py") -> list[str]:
    """What is said about a module that cimports View and has these functions."""
    (tree / "src" / "forebay" / "_codec").mkdir(exist_ok=True)
    write(tree, "_codec/prim.pxd", VIEW)
    write(tree, name, both("_codec.prim", "View") + functions)
    return check(tree)


def test_structs_are_found_however_they_are_declared() -> None:
    text = "cdef struct A:\n    int a\nctypedef struct B:\n    int b\ncdef packed struct C:\n    int c\n"
    text += "cdef extern from 'x.h':\n    struct D:\n        int d\n# cdef struct E:\ncdef int construct(F f)\n"
    assert structs_of_pxd(text) == {"A", "B", "C", "D"}


def test_a_cfunc_may_take_a_struct(tree: Path) -> None:
    assert taking(tree, f"{CFUNC}def f(record: View, at: cython.int) -> None: ...\n") == []
    assert taking(tree, f"class A:\n    {CFUNC}    @cython.exceptval(-1)\n    def f(self, record: View): ...\n") == []


@pytest.mark.parametrize(
    ("functions", "line", "name"),
    [
        ("def f(record: View) -> None: ...\n", 6, "f"),
        ("class A:\n    def f(self, size: int, record: View) -> None: ...\n", 7, "f"),
        ("@cython.cclass\nclass A:\n    @cython.ccall\n    def f(self, record: View): ...\n", 9, "f"),
        (f"{CFUNC}def f(x: cython.int):\n    def inner(*, record: View): ...\n", 8, "inner"),
        ("async def f(record: View): ...\n", 6, "f"),
        ("def f(record: 'View | None' = None): ...\n", 6, "f"),
        ("def f(record: prim.View, /): ...\n", 6, "f"),
        ("def f(*records: View): ...\n", 6, "f"),
    ],
)
def test_what_python_can_call_may_not(tree: Path, functions: str, line: int, name: str) -> None:
    """Cython would convert the struct to a dict and back, and crash on its pointers."""
    assert taking(tree, functions) == [
        f"src/forebay/_pool/a.py:{line}: {name} takes the struct View but is not a @cython.cfunc"
    ]


def test_a_struct_goes_by_the_name_it_has_in_the_module(tree: Path) -> None:
    taking(tree, "")
    write(tree, "_pool/a.py", both("_codec.prim", "View as Record") + "def f(a: Record, b: View): ...\n")
    write(tree, "_codec/prim.py", "import cython\ndef f(record: View): ...\n")
    assert check(tree) == [
        "src/forebay/_codec/prim.py:2: f takes the struct View but is not a @cython.cfunc",
        "src/forebay/_pool/a.py:6: f takes the struct Record but is not a @cython.cfunc",
    ]


def test_modules_that_are_not_compiled_and_other_classes_are_let_alone(tree: Path) -> None:
    taking(tree, "")
    write(tree, "_codec/prim.py", "class View: ...\ndef f(record: View): ...\n")
    write(tree, "_pool/a.py", "import cython\nclass View: ...\ndef f(record: View): ...\n")
    assert check(tree) == []


def test_the_packages_own_struct_is_among_those_looked_for() -> None:
    package = Path(__file__).parents[3] / "src" / "forebay"
    structs = {"forebay._runtime.primitives": structs_of_pxd((package / "_runtime" / "primitives.pxd").read_text())}
    tree = ast.parse((package / "_accumulator" / "appender.py").read_text())
    assert structs_in_scope(tree, "forebay._accumulator.appender", structs) == {"RecordView"}


@pytest.mark.parametrize(
    ("statement", "word"),
    [
        ("return 1", "return"),
        ("break", "break"),
        ("continue", "continue"),
        ("with g(): return 1", "return"),
        ("for _ in g(): return 1", "return"),
    ],
)
def test_no_compiled_code_leaves_an_except_clause(tree: Path, statement: str, word: str) -> None:
    """Cython drops the traceback, which is not there if memory lacked for it."""
    function = f"def f():\n    while g():\n        try: g()\n        except E as e:\n            {statement}\n"
    write(tree, "_pool/a.py", f"import cython\n{function}")
    assert [line.partition(" crashes")[0] for line in check(tree)] == [
        f"src/forebay/_pool/a.py:6: {word} in an except clause"
    ]
    write(tree, "_pool/a.py", function)
    assert check(tree) == []


@pytest.mark.parametrize("statement", ["raise", "for _ in g(): break", "h = lambda: 1", "def h(): return 1"])
def test_an_except_clause_may_end_or_raise(tree: Path, statement: str) -> None:
    code = f"import cython\ndef f():\n    try: g()\n    except E as e:\n        {statement}\n    return 1\n"
    write(tree, "_pool/a.py", code)
    assert check(tree) == []
