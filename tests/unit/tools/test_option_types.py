"""Types of options: each keyword has one, it says what the option takes, and a stale module is found."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from forebay.config import Option, ProducerConfig, Type, _typed, table
from forebay.config._aliases import ALIASES
from forebay.errors import ConfigError
from tools import option_types

HINTS: dict[str, Any] = get_type_hints(_typed.ProducerOptions)
LITERALS = [
    (option.name, value)
    for option in table()
    if option.choices and option.type is not Type.LIST
    for value in get_args(get_args(HINTS[option.name.replace(".", "_")])[0])
]


def test_each_option_and_each_name_of_another_client_has_a_type_that_is_more_than_any() -> None:
    names = [*(option.name for option in table()), *ALIASES]
    assert list(HINTS) == [name.replace(".", "_") for name in names]
    assert [name for name, hint in HINTS.items() if hint is Any or Any in get_args(hint)] == []


@pytest.mark.parametrize(("name", "value"), LITERALS)
def test_each_literal_is_a_value_of_its_option(name: str, value: object) -> None:
    (option,) = (option for option in table() if option.name == name)
    option.parse(value)


@pytest.mark.parametrize(
    "option", [option for option in table() if option.default is not None], ids=lambda each: each.name
)
def test_a_default_is_a_value_that_its_type_allows(option: Option) -> None:
    kinds = {Type.BOOLEAN: bool, Type.INT: int, Type.LONG: int, Type.DOUBLE: float, Type.LIST: tuple}
    expected = kinds.get(option.type, str)
    hint = HINTS[option.name.replace(".", "_")]
    if option.choices:
        assert option.default in get_args(get_args(hint)[0])
    else:
        assert isinstance(option.default, expected)
        assert expected in {getattr(each, "__origin__", each) for each in get_args(hint)}


@pytest.mark.parametrize("value", ["zst", 5])
def test_what_the_types_refuse_is_refused_at_run_time(value: Any) -> None:
    with pytest.raises(ConfigError, match="compression.type"):
        ProducerConfig(bootstrap_servers="h:1", compression_type=value)


def test_a_stale_module_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert option_types.main(["--check"]) == 0
    target = tmp_path / "_typed.py"
    monkeypatch.setattr(option_types, "TARGET", target)
    assert option_types.main(["--check"]) == 1
    target.write_text("stale")
    assert option_types.main(["--check"]) == 1
    assert "make generated" in capsys.readouterr().err
    assert option_types.main([]) == 0
    assert option_types.main(["--check"]) == 0


def test_importing_a_producer_does_not_import_the_types() -> None:
    doors = "forebay.KafkaProducer, forebay.AsyncKafkaProducer, forebay.AdminClient, forebay.per_process"
    asked = f"import forebay, sys; {doors};"
    subprocess.run([sys.executable, "-c", f"{asked} assert 'forebay.config._typed' not in sys.modules"], check=True)
