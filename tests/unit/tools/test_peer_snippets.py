"""Snippets of other clients' pages: which blocks are taken, and what their imports become."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.peer_snippets import NOT_APPLICABLE, Snippet, blocks_of, imports_changed, reason_not, snippets

MARKDOWN = """
```python
p = Producer({})
```
```bash
pip install it
```
"""
TEXT = """
Send::

    producer.send("a")

.. code-block:: python

    if True:
        producer.send("b")
.. code:: bash

    $ producer.py
"""


def test_blocks_of_a_page() -> None:
    assert list(blocks_of(MARKDOWN, ".md")) == [(2, "p = Producer({})\n")]
    assert list(blocks_of(TEXT, ".rst")) == [
        (2, 'producer.send("a")\n'),
        (6, 'if True:\n    producer.send("b")\n'),
    ]


def test_snippets_that_have_a_producer(tmp_path: Path) -> None:
    (tmp_path / "README.rst").write_text(TEXT + "\n.. code:: python\n\n    consumer.poll()  # as producer.send()\n")
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "one.py").write_text("producer = AIOKafkaProducer()\n")
    found = list(snippets("aiokafka", tmp_path))
    assert [each.place for each in found] == ["README.rst:2", "README.rst:6", "examples/one.py:1"]


@pytest.mark.parametrize(
    ("client", "before", "after"),
    [
        ("kafka", "from kafka import KafkaProducer", "from forebay.compat.kafka import KafkaProducer"),
        ("kafka", "from kafka.errors import KafkaError", "from forebay.compat.kafka.errors import KafkaError"),
        (
            "kafka",
            "from kafka import KafkaConsumer, KafkaProducer",
            "from forebay.compat.kafka import KafkaProducer\nfrom kafka import KafkaConsumer",
        ),
        ("aiokafka", "import aiokafka", "import forebay.compat.aiokafka as aiokafka"),
        ("confluent", "import sys, confluent_kafka as c", "import forebay.compat.confluent_kafka as c\nimport sys"),
        ("confluent", "from confluent_kafka.admin import AdminClient", "from confluent_kafka.admin import AdminClient"),
        (
            "confluent",
            "if True:\n    from confluent_kafka import (\n        Producer,\n        TopicPartition,\n    )",
            "if True:\n    from forebay.compat.confluent_kafka import Producer, TopicPartition",
        ),
        ("kafka", "import json\nfrom os import path", "import json\nfrom os import path"),
    ],
)
def test_the_import_alone_changes(client: str, before: str, after: str) -> None:
    assert imports_changed(client, before) == after + "\n"


def test_a_consumer_keeps_its_own_values() -> None:
    code = "from confluent_kafka import Consumer, Producer, TopicPartition\nConsumer({})\n"
    assert imports_changed("confluent", code) == (
        "from forebay.compat.confluent_kafka import Producer\n"
        "from confluent_kafka import Consumer, TopicPartition\nConsumer({})\n"
    )


def test_what_is_no_python_is_said() -> None:
    with pytest.raises(SyntaxError):
        imports_changed("kafka", "rewind...()")


def test_reasons() -> None:
    snippet = Snippet("examples/sasl_producer.py:1", "Producer({})")
    assert (
        reason_not("confluent", snippet, False)
        == reason_not("confluent", snippet, True)
        == "needs a broker with logins"
    )
    fails = Snippet("docs/high_level.rst:76", "producer.send()")
    assert "fails with the original" in str(reason_not("kafka", fails, False))
    assert reason_not("kafka", fails, True) is None
    assert all(reason for reasons in NOT_APPLICABLE.values() for reason in reasons.values())
