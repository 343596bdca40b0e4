"""``forebay tune``: a file to begin with, and what its settings give."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from forebay._insight.server import DescriptionServer
from forebay.cli import tune as command
from forebay.cli.commands import execute
from forebay.cli.failure import CommandError
from forebay.config._sources import read_properties
from forebay.tune import Costs, Stalls, Workload, advice, own_costs
from forebay.tune.racing import Effort
from tests.unit.tune.test_fitting import looks
from tests.unit.tune.traces import file_of, steady

LOAD = """
[load]
rate = 500
sizes = 100
topics = {orders = 4}
[cluster]
nodes = 2
[goal]
p99_ms = 50
[settings]
"linger.ms" = 5
"""


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def written(folder: Path, text: str = LOAD) -> str:
    path = folder / "load.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_file_to_begin_with_can_be_predicted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert execute(["tune", "init"]) == 0
    assert execute(["tune", "predict", "load.toml", "--seconds", "1"]) == 0
    shown = capsys.readouterr()
    assert "load.toml is written" in shown.out
    assert "2,000 records/s" in shown.out
    assert shown.err == ""


def test_a_file_that_is_there_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path)
    assert execute(["tune", "init", path]) == 2
    assert "is there already" in capsys.readouterr().err
    assert Path(path).read_text(encoding="utf-8") == LOAD
    assert execute(["tune", "init", str(tmp_path / "none" / "load.toml")]) == 2
    assert "cannot be written: No such file or directory" in capsys.readouterr().err


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Advice with few short runs."""
    effort = Effort(first_seeds=2, first_seconds=0.3, last=2, last_seeds=2, last_seconds=0.5, trial_seconds=0.3)
    monkeypatch.setattr(advice, "effort_for", lambda load, brokers: effort)


@pytest.mark.usefixtures("quick")
def test_advice_and_the_settings_it_proposes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, properties = written(tmp_path), tmp_path / "producer.properties"
    question = ["tune", "advise", path, "--seed", "3", "--goal", "p99_ms=30", "-X", "linger.ms=0"]
    assert execute([*question, "--properties", str(properties)]) == 0
    text = capsys.readouterr().out
    assert "advice    set " in text and "goal      kept: p99_ms 30\n" in text
    first, *lines = properties.read_text(encoding="utf-8").splitlines()
    assert first == "# Proposed by forebay tune advise."
    proposed = dict(line.split("=", 1) for line in lines)
    assert float(proposed["linger.ms"]) > 0
    assert {name: value for _where, name, value in read_properties(properties)} == proposed
    assert execute([*question, "--json", "--properties", str(properties)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {"linger.ms": "0", **{name: str(value) for name, value in found["settings"].items()}} == proposed


@pytest.mark.usefixtures("quick")
def test_a_page_is_written_where_the_user_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, pages = written(tmp_path), [tmp_path / "advice.html", tmp_path / "prediction.html"]
    assert execute(["tune", "advise", path, "--report", str(pages[0])]) == 0
    for _again in range(2):
        assert execute(["tune", "predict", path, "--seconds", "1", "--report", str(pages[1])]) == 0
    assert execute(["tune", "predict", path, "--seconds", "1", "--report", str(pages[0])]) == 0
    assert [b"In pictures" in page.read_bytes() for page in pages] == [True, True]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["advice.html", "load.toml", "prediction.html"]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("command", ["advise", "predict"])
def test_a_page_that_cannot_be_written_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    path = written(tmp_path)
    assert execute(["tune", command, path, "--report", str(tmp_path / "none" / "a.html")]) == 2
    shown = capsys.readouterr()
    assert shown.err.endswith("a.html cannot be written: there is no such folder\n")
    assert (shown.err.count("\n"), shown.out) == (1, "")
    assert execute(["tune", "predict", path, "--seconds", "1", "--report", str(tmp_path)]) == 2
    assert "cannot be written: Is a directory" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["advise", "--properties"], "file of settings that were proposed"),
        (["advise", "--report"], "page of the tuner"),
        (["predict", "--report"], "page of the tuner"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused_before_the_work(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    what: str,
) -> None:
    for work in ("advise", "predict"):
        monkeypatch.setattr(command, work, lambda *_given, **_more: pytest.fail("nothing must be simulated"))
    path = written(tmp_path)
    said = {
        path: f"{path} is there already, and is no {what}; name another file\n",
        str(tmp_path): f"{tmp_path} cannot be written: Is a directory\n",
        str(tmp_path / "none" / "a"): "a cannot be written: there is no such folder\n",
    }
    for file, expected in said.items():
        assert execute(["tune", arguments[0], path, arguments[1], file]) == 2
        shown = capsys.readouterr()
        assert shown.err.endswith(expected) and (shown.err.count("\n"), shown.out) == (1, "")
    assert Path(path).read_text(encoding="utf-8") == LOAD


def test_a_place_for_a_recording_is_looked_at_first(tmp_path: Path) -> None:
    for place, said in ((tmp_path / "none" / "a", "no such folder"), (tmp_path, "Is a directory")):
        with pytest.raises(CommandError, match=f"cannot be written: .*{said}"):
            command.recorded(None, str(place), print, lambda ms: None, seconds=2, replace=True)


@pytest.mark.parametrize(
    ("goal", "said"),
    [
        ("p99=5", "p99_ms"),
        ("p99_ms=soon", "p99_ms"),
        ("least=speed", "requests, latency, memory, cpu, bytes"),
    ],
)
def test_a_part_of_the_goal_that_cannot_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], goal: str, said: str
) -> None:
    assert execute(["tune", "advise", written(tmp_path), "--goal", goal]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.usefixtures("quick")
def test_a_goal_that_nothing_meets_is_status_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["tune", "advise", written(tmp_path), "--goal", "p99_ms=0.01"]) == 1
    assert "nothing that was tried keeps the goal" in capsys.readouterr().out


def test_text_and_json_say_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path)
    assert execute(["tune", "predict", path, "--seconds", "2", "-X", "linger_ms=20", "--seed", "7"]) == 0
    text = capsys.readouterr().out
    assert execute(["tune", "predict", path, "--seconds", "2", "-X", "linger_ms=20", "--seed", "7", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "settings  linger.ms=20\n" in text
    assert "goal      kept: p99_ms 50\n" in text
    assert f"{found['latency']['p99']:,.2f}" in text
    assert (found["seed"], found["settings"]) == (7, {"linger.ms": "20"})


def test_costs_that_were_measured_here_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path)
    assert execute(["tune", "predict", path, "--seconds", "1"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "the times of the brokers and of the client's own work are guesses" in said
    own_costs.keep(Costs(wake=20), own_costs.cache_file(), own_costs.machine())
    assert execute(["tune", "predict", path, "--seconds", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["latency"]["p50"] > 20
    assert found["doubts"][0] == "the times of the brokers are guesses"


def test_stalls_and_what_computes_beside_are_of_the_file_or_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def p50(client: str) -> float:
        path = written(tmp_path, LOAD + client)
        assert execute(["tune", "predict", path, "--seconds", "1", "--json"]) == 0
        return float(json.loads(capsys.readouterr().out)["latency"]["p50"])

    stalls = Stalls(seconds=1.0, long=tuple((20.0 * number, 15.0) for number in range(40)))
    (tmp_path / "stalls.json").write_text(stalls.as_json(), encoding="utf-8")
    calm = p50("")
    assert p50('[client]\nstalls = "stalls.json"\n') > calm + 2
    assert calm + 1 < p50('[client]\nbeside = "computing"\n') < calm + 12
    assert p50('[client]\nbeside = "nothing"\n') == calm
    own_costs.keep_stalls(stalls, own_costs.cache_file(), own_costs.machine())
    assert p50("") > calm + 2
    for client, said in {
        "stalls = 3": "stalls is 3; it must be the name of a file",
        'stalls = "none.json"': "none.json: it cannot be read",
        'beside = "thinking"': "one of nothing, computing",
    }.items():
        assert execute(["tune", "predict", written(tmp_path, LOAD + "[client]\n" + client)]) == 2
        assert said in capsys.readouterr().err


def test_short_loads_have_intervals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path)
    assert execute(["tune", "predict", path, "--seconds", "1"]) == 0
    text = capsys.readouterr().out
    assert "seed 1; in brackets what other seeds gave" in text
    assert re.search(r"^requests  [\d,.]+/s \([\d,.]+.[\d,.]+\) with", text, re.MULTILINE)
    assert execute(["tune", "predict", path, "--seconds", "1", "--seeds", "1"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "so no interval is known" in text and "in brackets" not in text


def test_a_limit_that_is_not_kept_is_exit_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["tune", "predict", written(tmp_path), "--seconds", "2", "-X", "linger.ms=200"]) == 1
    assert "goal      not kept: p99_ms is 20" in capsys.readouterr().out


def test_a_load_that_is_not_served_is_exit_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, "[load]\nrate = 10\nsizes = 2000000\n")
    assert execute(["tune", "predict", path, "--seconds", "2"]) == 1
    shown = capsys.readouterr().out
    assert "MESSAGE_TOO_LARGE" in shown
    assert "the load is not served by these settings" in shown


@pytest.mark.parametrize(
    ("text", "more", "said"),
    [
        ("[load]\nrat = 1", [], "load.toml: unknown key 'rat' in [load]; did you mean 'rate'?"),
        (LOAD, ["-X", "linger.sm=1"], "Unknown option 'linger.sm': did you mean 'linger.ms'?"),
        (LOAD, ["-X", "linger"], "write name=value"),
        (LOAD, ["-X", "transactional.id=a"], "transactions are not simulated"),
        (LOAD, ["--seconds", "0"], "0.0 is not in the range"),
        (LOAD, ["-X", "compression.type=lz4"], "compression = {ratio = 0.3}"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, more: list[str], said: str
) -> None:
    assert execute(["tune", "predict", written(tmp_path, text), *more]) == 2
    shown = capsys.readouterr()
    assert said in shown.err
    assert (shown.err.count("\n"), shown.out) == (1, "")


def test_a_trace_is_predicted_with_its_own_settings_and_brokers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(file_of(tmp_path / "a.trace", *steady(300)))
    assert execute(["tune", "predict", path]) == 0
    shown = capsys.readouterr().out
    assert "trace     1.0 s, 300 records of me; on average:\nload      300 records/s, values of 100 B" in shown
    assert "settings  linger.ms=5" in shown and "2 nodes" in shown and "guessed from the fast answers" in shown
    assert execute(["tune", "predict", path, "-X", "linger.ms=50", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["settings"], found["sent"]) == ({"linger.ms": "50"}, 300)


def test_running_producers_are_described_in_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seen = iter([looks(0, 1000, 2000)[at].as_json() for at in range(3)])
    path = tmp_path / "load.toml"
    server = DescriptionServer(str(tmp_path), "me")
    server.start(lambda: next(seen))
    waits: list[float] = []
    said: list[str] = []
    try:
        code = command.recorded(server.path, str(path), said.append, waits.append, seconds=2, replace=False)
    finally:
        server.close()
    assert (code, waits) == (0, [1000.0, 1000.0])
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# Bursts shorter than a second are not seen") and "# seen: ms of a request: 4.00" in text
    load = Workload.from_toml(path)
    assert (load.rate, load.topics) == (1000.0, (("a", 6),))
    assert "1 producer(s) in 2 s. Bursts shorter than a second are not seen" in said[0]
    assert execute(["tune", "predict", str(path), "--seconds", "1"]) == 0
    assert "load      1,000 records/s, values of 200 B" in capsys.readouterr().out
    with pytest.raises(CommandError, match="is there already"):
        command.recorded(None, str(path), said.append, waits.append, seconds=2, replace=False)


def test_where_no_producer_shows_itself_nothing_is_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["tune", "record", str(tmp_path), "--seconds", "1", "-o", str(tmp_path / "load.toml")]) != 0
    assert "no producer shows itself there" in capsys.readouterr().err
    assert not (tmp_path / "load.toml").exists()


def test_several_topics_are_written_as_streams() -> None:
    seen = looks(0, 1000)
    topic = seen[1].topics[0]
    more = [replace(each, topics=(*each.topics, replace(each.topics[0], topic="b"))) for each in seen]
    text = command.file_text([more])
    assert topic.acknowledged == 1000
    assert text.count("[[load.stream]]") == 2 and 'topic = "b"' in text and "producers = 1" in text


def test_a_sample_says_how_batches_compress(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, sample = written(tmp_path), tmp_path / "values.jsonl"
    sample.write_bytes(b"".join(b'{"order": %d, "state": "placed"}\n' % number for number in range(2000)))
    arguments = ["tune", "predict", path, "-X", "compression.type=gzip", "--seconds", "1", "--json", "--sample"]
    assert execute([*arguments, str(sample)]) == 0
    small, plain = json.loads(capsys.readouterr().out), execute([*arguments[:3], "--seconds", "1", "--json"])
    assert plain == 0
    assert small["bytes_s"] < 0.8 * json.loads(capsys.readouterr().out)["bytes_s"]
    assert "a full batch compresses to 0.0" in str(small["assumptions"])
    assert execute([*arguments, str(tmp_path / "none")]) == 2
    assert "none cannot be read: No such file or directory" in capsys.readouterr().err


def test_a_sample_without_a_codec_is_of_the_codec_that_is_proposed(tmp_path: Path) -> None:
    sample = tmp_path / "values.txt"
    sample.write_bytes(b"order placed\n" * 1000)
    assert command.sampled(str(sample), "none").ratio == command.sampled(str(sample), "zstd").ratio
