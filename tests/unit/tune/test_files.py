"""Files of a question: what they say, and what is refused in one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from forebay.cli.tune import client_of
from forebay.config._options import PRODUCER_OPTIONS
from forebay.errors import ConfigError
from forebay.tune import predict
from forebay.tune.brokers import Brokers, Others
from forebay.tune.files import ALLOWED, LISTS, TEMPLATE, checked_settings, in_file, read, read_cluster
from forebay.tune.goal import Goal
from forebay.tune.workload import Burst, Compression, Cycle, Keys, Lognormal, Mix, Workload

DESIGN = """
[load]
rate = [[0, 500], [60, 8000]]
sizes = {5000 = 0.5, 12000 = 0.5}
keys = {count = 10000, zipf = 1.0}
topics = {orders = 12}
producers = 2
[cluster]
nodes = 3
rtt_ms = 1.5
[[cluster.node]]
node = 3
fixed_ms = 8
[[cluster.outage]]
node = 2
seconds = [20, 50]
kind = "not_leader"
[goal]
least = "requests"
p99_ms = 50
memory = "64 MiB"
lost = 0
[settings]
"linger.ms" = 5
batch.size = 32768
"""


def written(folder: Path, text: str, name: str = "load.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def everything_in(path: Path) -> tuple[Workload, Brokers, Goal]:
    return Workload.from_toml(path), Brokers.from_toml(path), Goal.from_toml(path)


def test_a_whole_file(tmp_path: Path) -> None:
    path = written(tmp_path, DESIGN)
    load, cluster, goal = everything_in(path)
    (stream,) = load.streams
    assert stream.rate == ((0.0, 500.0), (60.0, 8000.0))
    assert stream.sizes == Mix(((5000, 0.5), (12000, 0.5)))
    assert stream.keys == Keys(10_000, 1.0)
    assert (load.topics, load.producers) == ((("orders", 12),), 2)
    assert [node.fixed_ms for node in cluster.nodes] == [0.5, 0.5, 8]
    assert [node.rtt_ms for node in cluster.nodes] == [1.5] * 3
    assert cluster.outages[0].seconds == (20.0, 50.0)
    assert goal.limits() == {"p99_ms": 50.0, "memory": 64 << 20, "lost": 0}
    assert dict(read(path).settings) == {"linger.ms": "5", "batch.size": "32768"}


def test_the_template_is_a_file_that_can_be_read(tmp_path: Path) -> None:
    path = written(tmp_path, TEMPLATE)
    assert Workload.from_toml(path).rate == 2000
    assert Workload.from_toml(path).streams[0].sizes == Cycle((1000,))
    assert len(Brokers.from_toml(path).nodes) == 3
    assert Goal.from_toml(path) == Goal()


def test_several_streams(tmp_path: Path) -> None:
    text = "[load]\ntopics = {a = 1, b = 2}\n[[load.stream]]\nrate = 1\ntopic = 'a'\n[[load.stream]]\nrate = 2\n"
    assert [stream.topic for stream in Workload.from_toml(written(tmp_path, text)).streams] == ["a", None]


def test_the_cluster_of_another_file_and_what_replaces_it(tmp_path: Path) -> None:
    written(tmp_path, "[cluster]\nnodes = 2\nrtt_ms = 7\nfixed_ms = 2\n", "cluster.toml")
    path = written(tmp_path, "[load]\nrate = 1\n[cluster]\nfile = 'cluster.toml'\nrtt_ms = 3\n")
    assert [(node.rtt_ms, node.fixed_ms) for node in Brokers.from_toml(path).nodes] == [(3, 2), (3, 2)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[laod]\nrate = 1", "unknown key 'laod' in the file; did you mean 'load'?"),
        ("[load]\nrat = 1", "unknown key 'rat' in [load]; did you mean 'rate'?"),
        ("[load]\nrate = 1\n[cluster]\nrtt = 1", "unknown key 'rtt' in [cluster]; did you mean 'rtt_ms'?"),
        ("[load]\nrate = 1\n[[cluster.outage]]\nnodes = 1", "unknown key 'nodes' in [[cluster.outage]]; did you mean"),
        ("[load]\nrate = 1\n[cluster]\noutage = 3", "[cluster] outage must be written [[cluster.outage]]"),
        ("[goal]\nlost = 0", "no [load]: add it with a rate"),
        ("[load]\nsizes = 3", "a load needs a rate, such as rate = 2000"),
        ("[load]\nrate = 0", "rate is 0; it must be a number above 0 to 1e+07"),
        ("[load]\nrate = 1\nsizes = {big = 1}", "sizes is 'big'; it must be a whole number from 0"),
        ("[load]\nrate = 1\n[[load.stream]]\nrate = 2", "[[load.stream]] for several kinds of records"),
        ("[load]\ntrace = 'day.trace'", "day.trace: it cannot be read: No such file or directory"),
        ("[load]\nrate = 1\n[goal]\nleast = 'latncy'", "one of requests, latency"),
        ("[load]\nrate = 1\n[settings]\ntransactional.id = 'x'", "transactions are not simulated"),
        ("[load]\nrate = 1\n[settings]\nlinger.sm = 5", "Unknown option 'linger.sm': did you mean 'linger.ms'?"),
        ("[load]\nrate = 1\n[settings]\nlinger.ms = 'long'", "linger.ms"),
        ("[load\n", "not TOML"),
        ("[load]\nrate = 1\n[cluster]\nfile = 'none.toml'", "none.toml: no such file"),
    ],
)
def test_what_is_refused_and_how(tmp_path: Path, text: str, said: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as refusal:
        everything_in(path)
    assert said in refusal.value.message
    assert refusal.value.message.startswith(f"{path}: ")
    assert "\n" not in refusal.value.message


def test_a_cluster_alone_or_that_of_a_load(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    for text in ("[cluster]\nnodes = 3\n", "[load]\nrate = 1\n[cluster]\nnodes = 3\n"):
        path.write_text(text, encoding="utf-8")
        assert read_cluster(path) == {"nodes": 3}
    (tmp_path / "b.toml").write_text('[cluster]\nfile = "a.toml"\n', encoding="utf-8")
    path.write_text("[cluster]\nnodes = 4\n", encoding="utf-8")
    assert read_cluster(tmp_path / "b.toml") == {"nodes": 4}
    path.write_text("[cluster]\nnods = 4\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"a.toml: .*nods"):
        read_cluster(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        read(tmp_path / "none.toml")


def test_settings_keep_what_changes_the_flow_of_records() -> None:
    found = checked_settings(
        {"linger_ms": 7, "sasl.mechanism": "PLAIN", "ssl.truststore.location": "/nowhere", "bootstrap.servers": "b:1"}
    )
    assert found == {"linger.ms": 7}


@pytest.mark.parametrize("name", ["key.serializer", "interceptor.classes", "partitioner.class"])
def test_code_of_the_user_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="runs no code of yours"):
        checked_settings({name: print})


VALUES = (
    *(
        "12",
        "-1",
        "true",
        '"text"',
        '""',
        '"a\\u0000b"',
        "nan",
        "inf",
        "1e400",
        f"1{'0' * 400}",
        f"1{'0' * 5000}",
        "1979-05-27",
    ),
    *("[]", "{}", "[[]]", "[{}]", '[1, "a"]', '{"a" = 1}', '{"a" = []}', '{12 = "a"}', "{median = 1, sigma = []}"),
)
"""Of every kind that TOML has."""
WITHIN = {
    "sizes": Lognormal,
    "key_sizes": Lognormal,
    "keys": Keys,
    "burst": Burst,
    "compression": Compression,
    "others": Others,
}
"""Keys that have a table, and what it is made into."""
BEFORE = {
    "[load]": "",
    "[[load.stream]]": "",
    "[cluster]": "",
    "[[cluster.node]]": "node = 1\n",
    "[[cluster.outage]]": "node = 1\nseconds = [1, 2]\n",
}
"""What a table has beside the key that is tried."""


def every_key() -> Iterator[tuple[str, str]]:
    """The table and the name of each key that a file may have, and of those in tables within it."""
    tables = {f"[{name}]": keys for name, keys in ALLOWED.items() if keys is not None}
    tables |= {f"[[{name}.{key}]]": keys for (name, key), keys in LISTS.items()}
    for table, keys in tables.items():
        for key in keys:
            yield table, key
            if key in WITHIN:
                yield from ((table, f"{key}.{each.name}") for each in fields(WITHIN[key]))


def file_with(table: str, key: str, value: str) -> str:
    """A file that is right but for one value."""
    outer, _dot, inner = key.partition(".")
    needed = {"sizes": "median = 100, sigma = 1", "key_sizes": "median = 100, sigma = 1", "keys": "count = 1"}
    needed |= {"burst": "on_ms = 1, off_ms = 1", "compression": "ratio = 0.5"}
    others = [each for each in needed.get(outer, "").split(", ") if each and not each.startswith(f"{inner} ")]
    line = f"{outer} = {{{', '.join([*others, f'{inner} = {value}'])}}}" if inner else f"{outer} = {value}"
    beside = [each for each in BEFORE.get(table, "").splitlines() if not each.startswith(f"{key} ")]
    if table in ("[load]", "[[load.stream]]") and key not in ("rate", "trace", "stream"):
        beside.append("rate = 1")
    load = "" if "load" in table else "[load]\nrate = 1\n"
    return "\n".join([load, table, *beside, line, ""])


def told_of(path: Path, seconds: float | None) -> str | None:
    """The refusal of a file, or that of its prediction; None: it is right."""
    try:
        load, brokers, goal = everything_in(path)
        found = read(path)
        in_file(path, lambda: client_of(found.client, load))
        assert goal.limits() is not None
        if seconds is not None:
            predict(load, found.settings, brokers=brokers, seconds=seconds)
    except ConfigError as error:
        return error.message
    return None


@pytest.mark.parametrize(("table", "key"), [*every_key()])
def test_a_value_of_any_kind_is_right_or_refused_in_one_sentence(tmp_path: Path, table: str, key: str) -> None:
    for value in VALUES:
        said = told_of(written(tmp_path, file_with(table, key, value)), 0.01)
        assert said is None or "\n" not in said, value


@pytest.mark.parametrize("value", VALUES)
def test_a_setting_of_any_kind_is_right_or_refused_in_one_sentence(tmp_path: Path, value: str) -> None:
    for name in (each.name for each in PRODUCER_OPTIONS):
        said = told_of(written(tmp_path, f'[load]\nrate = 1\n[settings]\n"{name}" = {value}\n'), None)
        assert said is None or "\n" not in said, name


@pytest.mark.parametrize("table", ["load", "cluster", "goal", "client", "settings", "load.stream", "cluster.outage"])
def test_what_must_be_a_table_is_one(tmp_path: Path, table: str) -> None:
    outer, _dot, inner = table.partition(".")
    for value in VALUES:
        text = f"[{outer}]\n{inner} = {value}\n" if inner else f"{outer} = {value}\n"
        said = told_of(written(tmp_path, text if outer == "load" else f"{text}[load]\nrate = 1\n"), None)
        assert said is None or "\n" not in said, value


def test_an_outage_needs_its_node_and_its_seconds(tmp_path: Path) -> None:
    for given in ("", "node = 1\n", "seconds = [1, 2]\n"):
        said = told_of(written(tmp_path, f"[load]\nrate = 1\n[[cluster.outage]]\n{given}"), None)
        assert said is not None and "[[cluster.outage]]" in said
