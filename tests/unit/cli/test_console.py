"""cli.console: the flags of kafka-console-producer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest

from forebay.cli import console, flags
from forebay.cli.failure import CommandError
from forebay.cli.input.files import Layout
from forebay.cli.input.lines import LineFormat
from forebay.cli.produce import ProduceJob


def job(*arguments: str) -> ProduceJob:
    @click.command()
    @flags.apply(flags.CONSOLE)
    def command(**values: Any) -> ProduceJob:
        return console.job_of(values)

    found: ProduceJob = command.main(["--topic", "t", "--bootstrap-server", "h:1", *arguments], standalone_mode=False)
    return found


def test_plain_lines_of_standard_input() -> None:
    plain = job()
    assert (plain.topic, plain.paths, plain.sync, plain.skip_bad, plain.quiet) == ("t", ("-",), False, False, True)
    assert plain.layout == Layout("lines", LineFormat(text=True), limit=plain.config["max.request.size"])
    assert plain.skip_flag == "--property ignore.error=true"


def test_flags_that_are_options() -> None:
    found = job("--timeout", "7", "--batch-size", "9", "--request-required-acks", "-1", "--sync").config
    assert (found["linger.ms"], found["batch.size"], found["acks"]) == (7, 9, -1)
    codecs = [job(*given).config["compression.type"] for given in ([], ["--compression-codec"])]
    assert codecs == ["none", "gzip"]
    assert job("--compression-codec", "lz4", "--sync").config["compression.type"] == "lz4"
    assert job("--sync").sync


def test_reader_properties_of_a_file_and_of_flags(tmp_path: Path) -> None:
    path = tmp_path / "reader"
    path.write_text("parse.key=true\nkey.separator=:\nignore.error=true\n")
    found = job("--reader-config", str(path))
    assert (found.layout.lines.key_delimiter, found.layout.lines.key_required, found.skip_bad) == (b":", True, True)
    assert job("--reader-config", str(path), "--property", "key.separator=|").layout.lines.key_delimiter == b"|"


@pytest.mark.parametrize("reader", console.READERS)
def test_kafka_s_own_reader_is_what_there_is(reader: str) -> None:
    assert job("--line-reader", reader).layout.form == "lines"
    with pytest.raises(CommandError, match="--line-reader 'a.B' is a Java class, .*; there is org.apache.kafka"):
        job("--line-reader", "a.B")
