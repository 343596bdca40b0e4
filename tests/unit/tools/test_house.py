"""The house is counted from every kind of import, and a circle is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.house import circles, components, described, floors, lines_of_code, main, read, refused, rooms

FILES = {
    "__init__.py": "from forebay._top.call import Call",
    "errors.py": "",
    "_low/__init__.py": "",
    "_low/pool.py": "from forebay import errors",
    "_low/batch.py": "from cython.cimports.forebay._low.pool import Pool",
    "_top/__init__.py": "from ._inner import x",
    "_top/_inner.py": "from .. import errors",
    "_top/call.py": "def late():\n    from forebay._low.batch import Batch",
    "_top/typed.py": "if TYPE_CHECKING:\n    from forebay._low.pool import Pool",
    "_top/call.pxd": "from forebay._low.pool cimport Pool as P, Share  # both\ncimport forebay._top.typed",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        write(tmp_path, name, text)
    return tmp_path


def write(tree: Path, name: str, text: str) -> None:
    path = tree / "forebay" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_every_kind_of_import_is_an_edge(tree: Path) -> None:
    house = read(tree)
    assert house.seen["forebay._top.call"] == {"forebay._low.batch"}
    assert house.hidden["forebay._top.call"] == {"forebay._low.pool", "forebay._top.typed"}
    assert house.hidden["forebay._low.batch"] == {"forebay._low.pool"}
    assert house.seen["forebay._top.typed"] == {"forebay._low.pool"}
    assert house.seen["forebay._top"] == {"forebay._top._inner"}
    assert house.seen["forebay._top._inner"] == house.seen["forebay._low.pool"] == {"forebay.errors"}


def test_what_is_imported_openly_is_not_hidden(tree: Path) -> None:
    write(tree, "_low/batch.py", "from forebay._low.pool import Pool")
    write(tree, "_low/batch.pxd", "from forebay._low.pool cimport (Pool,\n    Share)")
    house = read(tree)
    assert house.hidden["forebay._low.batch"] == set() and house.seen["forebay._low.batch"] == {"forebay._low.pool"}


def test_rooms_and_floors(tree: Path) -> None:
    arrows = rooms(read(tree))
    assert arrows == {"errors": set(), "_low": {"errors"}, "_top": {"_low", "errors"}}
    assert floors(arrows) == {"errors": 1, "_low": 2, "_top": 3}
    assert floors({"a": {"b"}, "b": {"a", "c"}, "c": set()}) == {"a": 2, "b": 2, "c": 1}


@pytest.mark.parametrize(
    ("below", "kind"),
    [
        ("from forebay._top.typed import T", "open"),
        ("from cython.cimports.forebay._top.typed import T", "a cimport"),
        ("def late():\n    import forebay._top.typed", "in a function"),
    ],
)
def test_a_circle_of_any_kind_is_refused(tree: Path, below: str, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert list(refused(read(tree))) == []
    write(tree, "_low/pool.py", below)
    house = read(tree)
    assert circles(house) == [["forebay._low.pool", "forebay._top.typed"]], kind
    (complaint,) = refused(house)
    assert complaint.startswith("these files import each other: forebay._low.pool, forebay._top.typed; move ")


def test_a_folder_s_own_init_makes_no_circle(tree: Path) -> None:
    write(tree, "_top/_inner.py", "from forebay import _top")
    assert circles(read(tree)) == []


def test_a_circle_of_three_is_one_group() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set()}
    assert list(components(graph)) == [{"d"}, {"a", "b", "c"}]


def test_lines_of_code_are_without_comments_and_docstrings(tmp_path: Path) -> None:
    path = tmp_path / "some.py"
    text = [
        '"""Two',
        'lines."""',
        "",
        "# A comment.",
        "x = 1  # beside",
        "def f():",
        '    """It."""',
        '    return """a',
        "",
        'b"""',
    ]
    path.write_text("\n".join(text))
    assert lines_of_code(path) == 4


def test_what_is_printed(tree: Path) -> None:
    lines = list(described(read(tree)))
    assert lines[:2] == ["3 rooms, 3 floors, 3 arrows", "9 files, 9 edges, 3 of them hidden, 0 circles"]
    assert lines[2:5] == ["  3 _top", "  2 _low", "  1 errors"]
    assert lines[5] == "9 lines of code without comments and docstrings; the longest files:"
    assert lines[6] == "    2 forebay._top.typed"


def test_this_project_has_no_circle(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"]) == 0
    assert capsys.readouterr().out == "files: none import each other\n"


def test_editors_see_nine_in_ten_of_this_project_s_edges() -> None:
    house = read(Path(__file__).parents[3] / "src")
    hidden = sum(map(len, house.hidden.values()))
    assert 10 * hidden <= sum(map(len, house.edges().values()))
