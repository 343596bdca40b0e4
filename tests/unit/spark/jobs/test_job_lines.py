"""A job in words: everything that it does, and no secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from forebay.pipeline import load
from forebay.spark.jobs.job import job_lines, without_secrets

JOB = """
[source]
format = "jdbc"
options = { url = "jdbc:x://user:sesame@host/db", password = "sesame", dbtable = "flights" }
[transform]
function = "late:rows"
[map]
key = "a  ||  b"
[value]
format = "avro"
[key]
format = "protobuf"
descriptor = "."
message = "m.M"
[registry]
url = "http://r:1"
basic.auth.user.info = "u:sesame"
[sink]
topic = "t"
dead_letters = "d"
repartition = true
options = { deliveryGuarantee = "exactly-once" }
[producer]
bootstrap.servers = "h:1"
security.protocol = "SASL_PLAINTEXT"
sasl.mechanism = "PLAIN"
sasl.jaas.config = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="sesame";'
[spark]
conf = { "spark.hadoop.fs.s3a.secret.key" = "sesame", "spark.executor.memory" = "1g" }
"""


def test_a_job_is_told_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    path.write_text(JOB)
    lines = list(job_lines(load(path)))
    assert "sesame" not in str(lines)
    found = dict(lines)
    assert found["source"] == "source: jdbc"
    assert found["source source option url"] == "jdbc:x://[hidden]@host/db"
    assert found["source source option password"] == "[hidden]"
    assert (found["transform"], found["map key"]) == ("late:rows", "a || b")
    assert (found["value format"], found["key format"]) == ("avro, schema of the columns", "protobuf, message m.M")
    assert found["registry"] == "http://r:1, TopicNameStrategy, with a password"
    assert (found["topic"], found["dead letters"], found["repartition"]) == ("t", "d", "kafka")
    assert found["sink deliveryGuarantee"] == "exactly-once"
    assert (found["producer bootstrap.servers"], found["producer sasl.jaas.config"]) == ("h:1", "[hidden]")
    assert (found["spark spark.executor.memory"], found["spark spark.hadoop.fs.s3a.secret.key"]) == ("1g", "[hidden]")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "jdbc:postgresql://h/db?user=u&password=sesame&ssl=true",
            "jdbc:postgresql://h/db?user=u&password=[hidden]&ssl=true",
        ),
        ("jdbc:sqlserver://h;user=u;password=sesame", "jdbc:sqlserver://h;user=u;password=[hidden]"),
        ("https://h/t?sv=1&sas_token=sesame", "https://h/t?sv=1&sas_token=[hidden]"),
        ("SELECT 1", "SELECT 1"),
    ],
)
def test_passwords_in_urls_are_hidden(text: str, shown: str) -> None:
    assert without_secrets(text) == shown
