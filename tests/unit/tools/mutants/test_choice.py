"""The same seed gives the same mutants."""

from __future__ import annotations

import random
from pathlib import Path

from tools.mutants.choice import CORE, SHARES, TWIN, choose, numbers, sample

TEXT = "\n".join(f"def f{number}(a, b):\n    return a + b\n" for number in range(30))


def make_tree(root: Path) -> None:
    for folder in (*CORE, "_network/sasl", "_protocol", "_transactions", "spark"):
        (root / "src/forebay" / folder).mkdir(parents=True)
        (root / "src/forebay" / folder / "part.py").write_text(TEXT)
        (root / "src/forebay" / folder / "twin.py").write_text(f'{TWIN}twin of a .pxd."""\n{TEXT}')
    for name in ("model/_arguments.py", "model/_cluster.py", "model/_gate.py"):
        (root / "src/forebay" / name).parent.mkdir(exist_ok=True)
        (root / "src/forebay" / name).write_text(TEXT)


def test_a_seed_gives_the_same_mutants_each_time_and_another_one_others(tmp_path: Path) -> None:
    make_tree(tmp_path)
    first, again, other = ([mutant.name for mutant in choose(tmp_path, seed, 20)] for seed in (1, 1, 2))
    assert first == again != other


def test_a_larger_count_has_the_mutants_of_a_smaller_one_too(tmp_path: Path) -> None:
    make_tree(tmp_path)
    few, many = ({mutant.name for mutant in choose(tmp_path, 1, count)} for count in (6, 60))
    assert few < many


def test_mutants_are_in_the_order_of_files_and_lines(tmp_path: Path) -> None:
    make_tree(tmp_path)
    places = [(mutant.path, mutant.change.line) for mutant in choose(tmp_path, 1, 20)]
    assert places == sorted(places)


def test_each_room_has_its_share_each_line_one_mutant_and_twins_none(tmp_path: Path) -> None:
    make_tree(tmp_path)
    chosen = choose(tmp_path, 5, 40)
    rooms = [mutant.room for mutant in chosen]
    assert {room: rooms.count(room) for room in SHARES} == numbers(40, SHARES)
    assert len({(mutant.path, mutant.change.line) for mutant in chosen}) == 40
    assert not [mutant.path for mutant in chosen if "twin" in mutant.path]


def test_shares_add_up() -> None:
    assert numbers(100, SHARES) == SHARES
    assert numbers(6, SHARES) == {"core": 2, "network": 2, "transactions": 1, "spark": 1}
    assert all(sum(numbers(count, SHARES).values()) == count for count in range(30))


def test_a_mutant_has_a_name_that_says_what_is_changed_where(tmp_path: Path) -> None:
    make_tree(tmp_path)
    mutant = choose(tmp_path, 1, 1)[0]
    change = mutant.change
    place = f"{mutant.path}:{change.line}:{change.start + 1}"
    assert mutant.name in (f"{place} arithmetic: + -> -", f"{place} return: a + b -> None")
    assert mutant._replace(change=change._replace(before="a" * 99, after="")).name.endswith("aaa... -> nothing")


def test_there_are_no_more_changes_than_lines() -> None:
    assert len(list(sample({"part.py": TEXT}, 99, random.Random(1)))) == 30
