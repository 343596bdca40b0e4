"""cli.properties: options from command lines and Java properties files."""

from __future__ import annotations

from pathlib import Path

import pytest

from forebay.cli.failure import CommandError
from forebay.cli.properties import Given, load_properties, pairs
from forebay.errors import ConfigError

GIVEN = Given().plus({"bootstrap.servers": "localhost:9092"}, "-b")


def test_later_options_win_in_either_spelling() -> None:
    given = GIVEN.plus({"linger.ms": "1", "acks": "1"}, "a.properties").plus({"linger_ms": "2"}, "-X")
    config = given.config()
    assert (config["linger.ms"], config["acks"]) == (2, 1)
    assert given.origins["linger.ms"] == "-X"


def test_a_refusal_names_the_origin_of_the_option_at_fault() -> None:
    given = GIVEN.plus({"acks": "1"}, "a.properties").plus({"linger.mss": "5"}, "b.properties")
    with pytest.raises(
        ConfigError, match=r"^b\.properties: Unknown option 'linger\.mss': did you mean 'linger\.ms'\?$"
    ):
        given.config()
    with pytest.raises(ConfigError, match="^-X: Invalid value 'x' for option linger.ms"):
        GIVEN.plus({"linger.ms": "x"}, "-X").config()


def test_options_at_odds_with_each_other_have_the_origins_of_all_that_are_named() -> None:
    with pytest.raises(ConfigError, match="^a:1, -X: acks is 1: must be all"):
        GIVEN.plus({"acks": "1", "linger.ms": "1"}, "a:1").plus({"enable.idempotence": "true"}, "-X").config()


def test_without_a_broker_there_is_nothing_to_do() -> None:
    with pytest.raises(CommandError, match="no broker is named: give --bootstrap-server"):
        Given().plus({"acks": "1"}, "-X").config()


def test_pairs_may_hold_equals_signs() -> None:
    assert pairs(["a=b=c", " x =", "y= z"], "-X") == {"a": "b=c", "x": "", "y": " z"}


@pytest.mark.parametrize("text", ["linger.ms", "=5", ""])
def test_a_text_that_is_no_pair_is_refused(text: str) -> None:
    with pytest.raises(CommandError, match="-X .*write name=value"):
        pairs([text], "-X")


def test_a_properties_file_as_java_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "p.properties"
    path.write_text(
        "# comment\n! comment\n\n"
        "acks=all\n  linger.ms : 5\nclient.id spaced out\r\n"
        "bootstrap.servers=a:1,\\\n    b:2\n"
        "odd\\ name\\=x = tab\\there\\u0041\\\\\n"
        "empty=\nbare\n"
        "key.serializer=org.apache.kafka.common.serialization.StringSerializer\n"
        "value.serializer=my.Own\n",
        newline="",
    )
    found = load_properties(str(path))
    assert [place for place, _, _ in found][:4] == [f"{path}:{line}" for line in (4, 5, 6, 7)]
    assert {name: value for _, name, value in found} == {
        "acks": "all",
        "linger.ms": "5",
        "client.id": "spaced out",
        "bootstrap.servers": "a:1,b:2",
        "odd name=x": "tab\thereA\\",
        "empty": "",
        "bare": "",
        "value.serializer": "my.Own",
    }


def test_a_properties_file_that_is_not_utf8_is_latin1(tmp_path: Path) -> None:
    path = tmp_path / "p.properties"
    path.write_bytes(b"client.id=caf\xe9")
    assert load_properties(str(path)) == [(f"{path}:1", "client.id", "caf\xe9")]


def test_bad_properties_files_say_where(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="properties file '.*none' cannot be read: No such file"):
        load_properties(str(tmp_path / "none"))
    (tmp_path / "bad").write_text("a=1\n\n=2\n")
    with pytest.raises(CommandError, match="bad:3: no option's name"):
        load_properties(str(tmp_path / "bad"))


def test_the_environment_names_the_brokers_where_nothing_else_does() -> None:
    environment = {"KAFKA_BOOTSTRAP_SERVERS": "env:1"}
    assert Given().config(environment)["bootstrap.servers"] == ("env:1",)
    flag = Given().plus({"bootstrap_servers": "flag:1"}, "-b")
    assert flag.config(environment)["bootstrap.servers"] == ("flag:1",)
    with pytest.raises(ConfigError, match="environment variable KAFKA_BOOTSTRAP_SERVERS: .*the port is missing"):
        Given().config({"KAFKA_BOOTSTRAP_SERVERS": "env"})
    for empty in ({}, {"KAFKA_BOOTSTRAP_SERVERS": ""}):
        with pytest.raises(CommandError, match="no broker is named: .* or set KAFKA_BOOTSTRAP_SERVERS"):
            Given().config(empty)
