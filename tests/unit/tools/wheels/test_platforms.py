"""The table of wheels, with a package index that is told."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tools.wheels import platforms
from tools.wheels.platforms import PLATFORMS, VERSIONS, show, table


def index(requirement: str, tags: Iterable[str], version: str) -> bool:
    """``patchy`` has no wheel for musl, and none for 3.14 on macOS."""
    system = next(iter(tags)).partition("_")[0]
    return requirement != "patchy" or not (system == "musllinux" or (system == "macosx" and version == "3.14"))


def test_each_requirement_is_looked_up_for_each_platform() -> None:
    rows = table(["whole", "patchy"], index)
    assert [row[:2] for row in rows] == [(name, platform) for name in ("whole", "patchy") for platform in PLATFORMS]
    missing = {row[:2]: row[2] for row in rows if row[2]}
    assert missing == {
        ("patchy", "musllinux_1_2_x86_64"): list(VERSIONS),
        ("patchy", "musllinux_1_2_aarch64"): list(VERSIONS),
        ("patchy", "macosx_x86_64"): ["3.14"],
        ("patchy", "macosx_arm64"): ["3.14"],
    }


def test_a_row_says_for_which_pythons_there_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    show([("a>=1", "macosx_arm64", ["3.13", "3.14"]), ("b", "macosx_arm64", [])])
    assert [line.split(maxsplit=2) for line in capsys.readouterr().out.splitlines()] == [
        ["a>=1", "macosx_arm64", "none for 3.13, 3.14"],
        ["b", "macosx_arm64", "yes"],
    ]


@pytest.mark.parametrize(("has", "ends"), [(index, False), (lambda *_: False, True)])
def test_a_hard_dependency_without_a_wheel_is_an_error(
    monkeypatch: pytest.MonkeyPatch, has: object, ends: bool
) -> None:
    monkeypatch.setattr(platforms, "has_wheels", has)
    monkeypatch.setattr("sys.argv", ["platforms"])
    if not ends:
        platforms.main()
        return
    with pytest.raises(SystemExit, match="12 rows of what everybody gets have no wheel: make it an extra"):
        platforms.main()
