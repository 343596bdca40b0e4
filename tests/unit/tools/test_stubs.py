"""Stubs of compiled modules: what is public is in them with Python's types, and nothing else is."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tools import stubs

SOURCE = '''
"""A module."""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import cython

from cython.cimports.forebay._other import Helper
from cython.cimports.forebay._third import Record as Inner

if TYPE_CHECKING:
    from forebay.model import Record

class Pair(NamedTuple):
    """Two."""

    one: int
    two: Helper

@cython.final
@cython.cclass
class RecordFuture:
    """A class."""

    __match_args__ = ("size",)

    def __init__(self, size: cython.longlong) -> None:
        self.size = size

    @property
    def part(self) -> Record:
        """A property."""
        return self._part

    @cython.ccall
    def ask(self, limit: cython.double = 1.5, *, then: Callable[[Pair], object] | None = None) -> cython.bint:
        return True

    @cython.cfunc
    def inner(self) -> Any: ...

    def metadata(self) -> Any: ...

    def _own(self) -> Any: ...

    def _asdict(self) -> dict[str, int]: ...

    def __len__(self) -> cython.Py_ssize_t: ...

    def __repr__(self) -> str: ...
'''
EXPECTED = """
from typing import final
from collections.abc import Callable
from typing import NamedTuple
from forebay._other import Helper
from forebay.model import Record

class Pair(NamedTuple):
    one: int
    two: Helper

@final
class RecordFuture:
    __match_args__ = ('size',)

    def __init__(self, size: int) -> None:
        ...

    @property
    def part(self) -> Record:
        ...

    def ask(self, limit: float=1.5, *, then: Callable[[Pair], object] | None=None) -> bool:
        ...

    def _asdict(self) -> dict[str, int]:
        ...

    def __len__(self) -> int:
        ...
"""


def test_a_stub_has_what_is_public_and_its_imports() -> None:
    assert stubs.stub(SOURCE, ["Pair", "RecordFuture"]) == f"{stubs.HEAD}{EXPECTED.rstrip()}"


def test_a_class_alone_needs_the_imports_of_its_own_alone() -> None:
    found = ast.parse(stubs.stub(SOURCE, ["Pair"]))
    assert [ast.unparse(node) for node in found.body[:-1]] == [
        "from typing import NamedTuple",
        "from forebay._other import Helper",
    ]


def test_a_c_type_that_python_has_no_word_for_is_no_user_s() -> None:
    with pytest.raises(KeyError, match="p_uchar"):
        stubs.stub("import cython\nclass C:\n    def at(self, place: cython.p_uchar) -> None: ...", ["C"])


def test_every_class_and_method_that_is_named_is_there() -> None:
    for module, classes in stubs.PUBLIC.items():
        tree = ast.parse((stubs.PACKAGE / f"{module}.py").read_text(encoding="utf-8"))
        found = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
        assert set(classes) <= set(found)
        for name in classes:
            methods = {item.name for item in found[name].body if isinstance(item, ast.FunctionDef)}
            assert stubs.INNER.get(name, set()) <= methods


def test_a_stub_that_is_not_what_its_module_says_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "_pair.py").write_text(SOURCE)
    monkeypatch.setattr(stubs, "PACKAGE", tmp_path)
    monkeypatch.setattr(stubs, "PUBLIC", {"_pair": ["Pair"]})
    monkeypatch.setattr(stubs, "TYPINGS", tmp_path / "typings")
    assert stubs.main(["--check"]) == 1
    assert "_pair.pyi" in capsys.readouterr().err
    assert not (tmp_path / "_pair.pyi").exists()
    assert stubs.main([]) == 0
    assert stubs.main(["--check"]) == 0
    (tmp_path / "_pair.py").write_text(SOURCE.replace("one: int", "one: str"))
    assert stubs.main(["--check"]) == 1


def test_what_is_cimported_is_for_checkers_what_is_imported(tmp_path: Path) -> None:
    sources = tmp_path / "src" / "forebay"
    (sources / "_pool").mkdir(parents=True)
    (sources / "_pool" / "pool.py").touch()
    (sources / "send.py").write_text(
        "from cython.cimports.forebay import _pool\n"
        "from cython.cimports.forebay._pool.pool import Pool, take\n"
        "from cython.cimports.libc.string import memcpy\n"
    )
    assert stubs.cimported(sources) == {"forebay": {"_pool"}, "forebay._pool.pool": {"Pool", "take"}}
    old = tmp_path / "typings" / "cython" / "cimports" / "old.pyi"
    old.parent.mkdir(parents=True)
    old.touch()
    fresh, typings = stubs.stubs_of_cimports(sources), tmp_path / "typings"
    assert Path("cython/cimports/old.pyi") in stubs.differing(fresh, typings)
    stubs.write_cimports(fresh, typings)
    assert stubs.differing(fresh, typings) == []
    folder = tmp_path / "typings" / "cython" / "cimports"
    assert not old.exists() and (folder / "__init__.pyi").exists()
    assert (folder / "forebay" / "__init__.pyi").read_text() == "from forebay import _pool as _pool\n"
    found = (folder / "forebay" / "_pool" / "pool.pyi").read_text()
    assert found == "from forebay._pool.pool import Pool as Pool\nfrom forebay._pool.pool import take as take\n"
