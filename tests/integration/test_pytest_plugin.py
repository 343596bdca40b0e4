"""The plugin as pytest finds it: in processes of their own, alone and with workers, and where no test asks for it."""

from __future__ import annotations

import textwrap
from pathlib import Path

from tests.support.suites import ROOT, run


def suite(folder: Path, text: str) -> Path:
    (folder / "test_suite.py").write_text(textwrap.dedent(text))
    return folder


def test_the_example_suites_pass_with_workers(tmp_path: Path) -> None:
    """The one of a Spark job is run by tests/spark."""
    suites = [str(ROOT / "demo/testing" / name) for name in ("test_fastapi_service.py", "test_celery_tasks.py")]
    counts, output = run(tmp_path, "-n", "2", "-c", str(ROOT / "pyproject.toml"), *suites)
    assert counts.get("passed") == 4 and not {"failed", "error", "errors"} & counts.keys(), output


def test_topics_are_the_tests_own_and_go_with_them(tmp_path: Path) -> None:
    folder = suite(
        tmp_path,
        """
        import pytest

        seen = []

        @pytest.mark.parametrize("word", ["a/b c", "ü"])
        @pytest.mark.kafka_topic(partitions=3)
        def test_topic(word, kafka_topic, kafka_producer, kafka_records):
            assert len(kafka_producer.partitions_for(kafka_topic)) == 3
            kafka_producer.send(kafka_topic, word.encode()).result(10)
            assert [record.value for record in kafka_records()] == [word.encode()]
            seen.append(kafka_topic)

        def test_others(kafka_topic, kafka_broker, kafka_producer):
            assert len(set(seen)) == 2 and len(kafka_producer.partitions_for(kafka_topic)) == 1
        """,
    )
    counts, output = run(folder, "--strict-markers")
    assert counts.get("passed") == 3, output


def test_a_marker_that_is_misspelt_is_an_error(tmp_path: Path) -> None:
    folder = suite(
        tmp_path,
        """
        import pytest

        @pytest.mark.kafka_topic(2)
        def test_by_position(kafka_topic, kafka_producer):
            assert len(kafka_producer.partitions_for(kafka_topic)) == 2

        @pytest.mark.kafka_topic(partition=2)
        def test_misspelt(kafka_topic):
            pass
        """,
    )
    counts, output = run(folder)
    assert counts.get("passed") == 1 and counts.get("errors", counts.get("error")) == 1, output
    assert "unexpected keyword argument 'partition'" in output


def test_the_broker_has_the_sessions_options_and_faults_end(tmp_path: Path) -> None:
    folder = suite(
        tmp_path,
        """
        import pytest

        from forebay.errors import NotLeaderOrFollowerError, KafkaTimeoutError

        @pytest.fixture(scope="session")
        def kafka_broker_options():
            return {"nodes": 3}

        def test_down(kafka_broker, kafka_producer, kafka_topic, kafka_records):
            assert kafka_broker.nodes == (1, 2, 3)
            kafka_producer.send(kafka_topic, b"w").result(30)
            with kafka_broker.faults.down(), pytest.raises(KafkaTimeoutError):
                kafka_producer.send(kafka_topic, b"x").result(0.3)
            kafka_producer.flush(30)
            with kafka_broker.faults.refuse("Produce", NotLeaderOrFollowerError, times=2):
                kafka_producer.send(kafka_topic, b"y").result(30)
            assert [record.value for record in kafka_records()] == [b"w", b"x", b"y"]
        """,
    )
    counts, output = run(folder)
    assert counts.get("passed") == 1, output


def test_a_fault_of_one_test_is_none_of_the_next(tmp_path: Path) -> None:
    folder = suite(
        tmp_path,
        """
        import pytest

        from forebay.errors import KafkaTimeoutError
        from forebay.testing import DISCONNECT

        def down(faults, topic):
            return faults.down()

        def down_1(faults, topic):
            return faults.down(1)

        def lost(faults, topic):
            return faults.refuse("ListOffsets", DISCONNECT)

        def unknown(faults, topic):
            return faults.topic_error(topic, 3)

        @pytest.mark.parametrize("number", range(3))
        @pytest.mark.parametrize("fault", [down, down_1, lost, unknown])
        class TestPairs:
            def test_disturbed(self, fault, number, kafka_broker, kafka_producer, kafka_topic, kafka_records):
                kafka_producer.send(kafka_topic, b"v").result(60)
                assert len(kafka_records()) == 1
                with fault(kafka_broker.faults, kafka_topic):
                    if number:
                        with pytest.raises(KafkaTimeoutError):
                            kafka_records(timeout=0.2)

            def test_innocent(self, fault, number, kafka_producer, kafka_topic, kafka_records):
                kafka_producer.send(kafka_topic, b"v").result(60)
                assert len(kafka_records()) == 1
        """,
    )
    counts, output = run(folder, "--strict-markers")
    assert counts == {"passed": 24}, output


def test_nothing_is_imported_where_no_test_asks(tmp_path: Path) -> None:
    folder = suite(
        tmp_path,
        """
        import sys

        def test_modules():
            loaded = {name for name in sys.modules if name.startswith("forebay")}
            assert loaded <= {"forebay", "forebay._interpreted", "forebay.testing", "forebay.testing.pytest_plugin"}
            assert "confluent_kafka" not in sys.modules
        """,
    )
    counts, output = run(folder)
    assert counts.get("passed") == 1, output
