"""A cimport that goes up, or sideways, is named with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.check_layers import check, layers

PROJECT = """
[[tool.importlinter.contracts]]
id = "layers"
layers = ["(_send)", "_pool | _net", "_codec"]
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
    write(tree, "_net/c.pxd", "cimport cython\n\nfrom forebay._send cimport send\n")
    assert check(tree) == [
        "src/forebay/_codec.py:3: forebay._codec cimports forebay._pool.a, a layer above",
        "src/forebay/_net/c.pxd:3: forebay._net.c cimports forebay._send, a layer above",
    ]


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
