"""cli.flags: other tools' flags, and what they mean here."""

from __future__ import annotations

from typing import Any

import click
import pytest

from forebay.cli import flags
from forebay.cli.failure import CommandError
from forebay.cli.input.files import Layout
from forebay.cli.input.jsonl import JsonFormat
from forebay.cli.input.lines import LineFormat
from forebay.cli.input.tables import TableFormat


def parsed(*arguments: str, options: list[flags.Option] = flags.PRODUCE) -> dict[str, Any]:
    @click.command(cls=flags.GreedyCommand)
    @flags.apply(options)
    def command(**values: Any) -> dict[str, Any]:
        return values

    result: dict[str, Any] = command.main(list(arguments), standalone_mode=False)
    return result


def test_kafka_s_flag_takes_all_pairs_that_follow() -> None:
    greedy = flags.GreedyCommand.greedy
    assert flags.spread(["--producer-props", "a=1", "b=2", "--topic", "t"], greedy) == [
        "--producer-props", "a=1", "--producer-props", "b=2", "--topic", "t",
    ]  # fmt: skip
    assert flags.spread(["-X", "a=1", "x"], greedy) == ["-X", "a=1", "x"]
    values = parsed("--topic", "t", "--num-records", "1", "--producer-props", "a=1", "b=2", options=flags.PERF)
    assert values["options"] == ("a=1", "b=2")


@pytest.mark.parametrize(
    "spelling",
    [
        ("-b", "h:1", "-t", "t", "-X", "acks=1"),
        ("--bootstrap-server", "h:1", "--topic", "t", "--command-property", "acks=1"),
        ("--broker-list", "h:1", "--topic", "t", "--producer-property", "acks=1"),
        ("-bh:1", "-tt", "--request-required-acks", "1"),
    ],
)
def test_the_spellings_of_other_tools(spelling: tuple[str, ...]) -> None:
    values = parsed(*spelling)
    given = flags.given_options(values, "-X")
    assert values["topic"] == "t"
    assert given.values == {"bootstrap.servers": "h:1", "acks": "1"}


def test_flags_win_over_options_and_those_over_files(tmp_path: Any) -> None:
    path = tmp_path / "p"
    path.write_text("linger.ms=1\nacks=1\ncompression.type=gzip\nbootstrap.servers=file:1\n")
    values = parsed("-t", "t", "-F", str(path), "-X", "linger.ms=2", "-z", "lz4", "-b", "flag:1")
    assert flags.given_options(values, "-X").values == {
        "linger.ms": "2",
        "acks": "1",
        "compression.type": "lz4",
        "bootstrap.servers": "flag:1",
    }


def test_every_console_flag_is_an_option_of_ours() -> None:
    from forebay.config import table

    assert set(flags.CONSOLE_OPTIONS.values()) <= {option.name for option in table()}
    for flag, option in flags.CONSOLE_OPTIONS.items():
        assert flags.given_options(parsed("-t", "t", flag, "5"), "-X").values == {option: "5"}


def test_how_inputs_are_read() -> None:
    values = parsed("-t", "t", "-K:", "-D", r"\0", "--key-field", "id", "--key-column", "k", "--value-column", "v")
    assert flags.layout(values, 77) == (
        Layout(None, LineFormat(b"\0", b":"), JsonFormat("id"), TableFormat("k", "v"), limit=77),
        False,
    )
    values = parsed("-t", "t", "--property", "parse.key=true", "--property", "ignore.error=true")
    layout, skip = flags.layout(values, 77)
    assert (layout.lines.key_delimiter, layout.lines.key_required, skip) == (b"\t", True, True)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--separator", ";;"], "--separator must be one character"),
        (["-K", ""], "-K: a delimiter cannot be empty"),
        (["-D", r"\q"], "-D '\\\\\\\\q': unknown escape"),
        (["--envelope", "--key-field", "id"], "exclude each other"),
        (
            ["--property", "parse.key"],
            r"--property \(number 1\): it has 9 characters, and no name before a =; write name=value",
        ),
    ],
)
def test_layouts_that_cannot_be(arguments: list[str], expected: str) -> None:
    with pytest.raises(CommandError, match=expected):
        flags.layout(parsed("-t", "t", *arguments), 77)


def test_headers() -> None:
    assert flags.header_pairs(["a=1=2", "b=", "c"]) == [("a", b"1=2"), ("b", b""), ("c", None)]
    with pytest.raises(CommandError, match="-H '=x'"):
        flags.header_pairs(["=x"])
    assert flags.header_pairs(["ä\t=\udcff"]) == [("ä\t", b"\xff")]
    with pytest.raises(CommandError, match="a header's name must be UTF-8"):
        flags.header_pairs(["a\udcff=x"])


def test_what_a_configuration_adjusts_is_told_with_v_only(capsys: pytest.CaptureFixture[str]) -> None:
    given = flags.given_options(parsed("-t", "t", "-b", "h:1", "-X", "acks=1"), "-X")
    assert flags.configuration(given, 0)["acks"] == 1
    assert capsys.readouterr().err == ""
    flags.configuration(given, 3)
    assert capsys.readouterr().err.startswith("forebay: ")


def spelled(*arguments: str, kind: type[flags.AbbreviatedCommand], options: list[flags.Option]) -> list[str]:
    @click.command(cls=kind)
    @flags.apply(options)
    def command(**values: Any) -> None: ...

    assert isinstance(command, flags.AbbreviatedCommand)
    return command.spelled(click.Context(command), list(arguments))


@pytest.mark.parametrize(
    ("kind", "options"),
    [(flags.ConsoleCommand, flags.CONSOLE), (flags.GreedyCommand, flags.PERF)],
    ids=["console-producer", "perf"],
)
def test_every_beginning_of_a_flag_that_fits_one_alone_is_that_flag(
    kind: type[flags.AbbreviatedCommand], options: list[flags.Option]
) -> None:
    @click.command()
    @flags.apply(options)
    def command(**values: Any) -> None: ...

    names = {full: param for param in command.params for full in param.opts if full.startswith("--")}
    for full, param in names.items():
        for end in range(3, len(full) + 1):
            begin = full[:end]
            meant = {param} if begin in names else {each for name, each in names.items() if name.startswith(begin)}
            for dashes in kind.dashes:
                given = f"{dashes}{begin[2:]}"
                if given in ("-b", "-t", "-F", "-X"):
                    continue
                (found,) = spelled(f"{given}=x=y", kind=kind, options=options)
                name, _, value = found.partition("=")
                assert value == "x=y"
                if begin in names or len(meant) == 1:
                    assert names[name] is names.get(begin, param)
                else:
                    assert name == given


def test_values_are_no_flags() -> None:
    given = ("--reader-p", "--topic", "--request-required", "-1", "--", "--top")
    expected = ["--reader-property", "--topic", "--request-required-acks", "-1", "--", "--top"]
    assert spelled(*given, kind=flags.ConsoleCommand, options=flags.CONSOLE) == expected
    one = ("-topic", "-t", "--boot", "top")  # a value like a flag's beginning
    assert spelled(*one, kind=flags.ConsoleCommand, options=flags.CONSOLE) == [
        "--topic",
        "-t",
        "--bootstrap-server",
        "top",
    ]
