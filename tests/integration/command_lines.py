# ruff: noqa: E501 -- a command line stays in one piece
"""Command lines of kcat and kafka-console-producer, in the forms that their own pages show, and what they have to do.

Each runs as it stands but for the program's name and the address of the broker.  What follows a ``|`` is the command;
a shell makes its input.
"""

from __future__ import annotations

from typing import NamedTuple

Found = tuple[bytes | None, bytes | None]
"""A record's key and value."""


class Line(NamedTuple):
    """A command line and its outcome."""

    text: str
    records: tuple[Found, ...] = ()
    """What arrives, in any order."""
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int | None = None
    shows: str = ""
    """A part of standard output."""
    refused: str = ""
    """A part of the error; it ends with 2."""
    code: int = 0


def values(*texts: str, key: str | None = None) -> tuple[Found, ...]:
    """Records with these values and the same key."""
    return tuple((None if key is None else key.encode(), text.encode()) for text in texts)


FILES = {
    "myfile1.bin": b"\x00\x01one",
    "notes.txt": b"first line\nsecond line\n",
    "thirdfile.tgz": b"\x1f\x8bthree",
    "keyed.txt": b"k1:v1\nk2:v2\n",
    "kcat.conf": b"# for kcat\nlinger.ms=1\ngroup.id=mine\nauto.offset.reset=earliest\nclient.id=conf\n",
    ".config/kcat.conf": b"topic.acks=1\nenable.idempotence=false\n",
    "producer.properties": b"linger.ms=3\nclient.id=console\nbatch.size=20000\n",
    "reader.properties": b"parse.key=true\nkey.separator=:\n",
    "orders.json": b'{"id":1}\n{"id":2}\n',
}

KCAT = (
    Line("echo hello | kcat -P -b mybroker -t syslog", values("hello")),
    Line("printf 'a\\nb\\n' | kcat -b mybroker -t syslog -z snappy", values("a", "b")),
    Line("printf 'a\\nb' | kcat -b mybroker -t syslog -z gzip", values("a", "b")),
    Line("echo a | kcat -b mybroker -t syslog -z lz4 -P", values("a")),
    Line("echo a | kcat -b mybroker -t syslog -z zstd -P", values("a")),
    Line("kcat -b mybroker -t filedrop -p 0 myfile1.bin notes.txt thirdfile.tgz",
         ((None, FILES["myfile1.bin"]), (None, FILES["notes.txt"]), (None, FILES["thirdfile.tgz"])), partition=0),
    Line("kcat -P -b mybroker -t filedrop -k picture myfile1.bin", ((b"picture", FILES["myfile1.bin"]),)),
    Line("kcat -P -l -b mybroker -t lines notes.txt", values("first line", "second line")),
    Line("kcat -P -b mybroker -t lines -l -K: keyed.txt", ((b"k1", b"v1"), (b"k2", b"v2"))),
    Line("kcat -P -b mybroker -t lines -K : -l keyed.txt", ((b"k1", b"v1"), (b"k2", b"v2"))),
    Line("kcat -P -b mybroker -t lines < notes.txt", values("first line", "second line")),
    Line("echo 'id1:payload' | kcat -P -b mybroker -t keyed -K:", values("payload", key="id1")),
    Line("printf 'id1\\tpayload\\n' | kcat -P -b mybroker -t keyed -K'\\t'", values("payload", key="id1")),
    Line("echo 'id1<->payload' | kcat -P -b mybroker -t keyed -K '<->'", values("payload", key="id1")),
    Line("echo 'no key' | kcat -P -b mybroker -t keyed -K:", values("no key")),
    Line("printf 'own:a\\nb\\n' | kcat -P -b mybroker -t keyed -K: -k fixed",
         (*values("a", key="own"), *values("b", key="fixed"))),
    Line("echo tombstone: | kcat -b mybroker -t mytopic -Z -K:", ((b"tombstone", None),)),
    Line("printf 'k:\\n' | kcat -b mybroker -t mytopic -K: -P", values("", key="k")),
    Line("printf ':v\\n' | kcat -b mybroker -t mytopic -K: -P -Z", values("v")),
    Line("printf 'a\\n\\n\\nb\\n' | kcat -b mybroker -t mytopic -P", values("a", "b")),
    Line("printf 'a;b;c' | kcat -P -b mybroker -t delimited -D ';'", values("a", "b", "c")),
    Line("printf 'a--b\\n--c' | kcat -P -b mybroker -t delimited -D--", values("a", "b\n", "c")),
    Line("printf 'a\\0b\\0' | kcat -P -b mybroker -t delimited -D '\\x00'", values("a", "b")),
    Line("printf 'a\\r\\nb\\r\\n' | kcat -P -b mybroker -t delimited -D '\\r\\n'", values("a", "b")),
    Line("echo text | kcat -P -b mybroker -t my_topic -H 'header1=header value' -H nullheader -H emptyheader= -H header1=again",
         values("text"), (("header1", b"header value"), ("nullheader", None), ("emptyheader", b""), ("header1", b"again"))),
    Line("echo one | kcat -P -b mybroker -t my_topic -p 2", values("one"), partition=2),
    Line("echo any | kcat -P -b mybroker -t my_topic -p -1", values("any")),
    Line("seq 1 100 | kcat -P -b mybroker -t numbers -c 3", values("1", "2", "3")),
    Line("seq 1 2 | kcat -P -b mybroker -t numbers -T", values("1", "2"), shows="12"),
    Line("echo k:v | kcat -PT -b mybroker -t numbers -K:", values("v", key="k"), shows="k:v"),
    Line("seq 1 2 | kcat -P -b mybroker:9092 -t numbers -q", values("1", "2")),
    Line("seq 1 2 | kcat -P -b mybroker,mybroker:9092 -t numbers -v", values("1", "2")),
    Line("echo x | kcat -P -b mybroker -t tuned -X queue.buffering.max.ms=1 -X message.timeout.ms=9000", values("x")),
    Line("echo x | kcat -P -b mybroker -t tuned -X topic.request.required.acks=1 -X enable.idempotence=false", values("x")),
    Line("echo x | kcat -P -b mybroker -t tuned -X acks=all -X retries=5 -X compression.codec=lz4", values("x")),
    Line("echo x | kcat -P -b mybroker -t tuned -X batch.num.messages=100 -X socket.keepalive.enable=true", values("x")),
    Line("echo x | kcat -P -b mybroker -t tuned -m 10", values("x")),
    Line("echo x | kcat -P -b mybroker -t tuned -d broker,topic,msg", values("x")),
    Line("echo x | kcat -P -E -b mybroker -t tuned", values("x")),
    Line("echo x | kcat -P -b mybroker -t tuned -F kcat.conf", values("x")),
    Line("echo x | KCAT_CONFIG=kcat.conf kcat -P -b mybroker -t tuned", values("x")),
    Line("echo x | kcat -P -t tuned -X metadata.broker.list=mybroker", values("x")),
    Line("echo same | kcat -P -b mybroker -t hashed -k 123456789 -X partitioner=consistent", values("same", key="123456789"),
         partition=0xCBF43926 % 4),
    Line("kcat -L -b mybroker", (), shows=" topics:"),
    Line("kcat -b mybroker -L -t known", (), shows='topic "known" with 3 partitions:\n    partition 0, leader 1, replicas: '),
    Line("kcat -L -J -b mybroker -t known", (), shows='"topics":[{"topic":"known","partitions":[{"partition":0,"leader":1,'),
    Line("kcat -V", (), shows="forebay "),
    Line("kcat -X list", (), shows="linger.ms"),
    Line("kcat -X dump -b mybroker -X linger.ms=7 -t x", (), shows="linger.ms = 7"),
    Line("seq 1 3 | kcat -P -b mybroker -t numbers -c 0", values("1", "2", "3")),
    Line("seq 1 3 | kcat -P -b mybroker -t numbers -e -o beginning", values("1", "2", "3")),
    Line("seq 1 2 | kcat -P -u -O -f '%s' -J -b mybroker -t numbers", values("1", "2")),
    Line("kcat -P -c 1 -b mybroker -t filedrop myfile1.bin notes.txt",
         ((None, FILES["myfile1.bin"]), (None, FILES["notes.txt"]))),
    Line("echo x | kcat -P -F none -b mybroker -t tuned", values("x")),
    Line("printf 'a\\rb\\r\\n' | kcat -P -b mybroker -t syslog", values("a\rb\r")),
    Line("printf '\\377\\n' | kcat -P -b mybroker -t syslog", ((None, b"\xff"),)),
    Line("kcat -L -b mybroker -t known", (), shows="Metadata for known (from broker 1: "),
    Line("kcat -L -J -b mybroker", (), shows='{"originating_broker":{"id":1,"name":"'),
    Line("kcat -X help", (), shows="linger.ms"),
    Line("kcat -P -s avro -b mybroker -t syslog", refused="-s is for reading"),
    Line("kcat -C -b mybroker -t syslog -p 0 -o -10 -e", refused="-C is for reading"),
    Line("kcat -b mybroker -G mygroup topic1 topic2", refused="-G is for reading"),
    Line("kcat -Q -b mybroker -t mytopic:3:1460000000000", refused="-Q is for reading"),
)  # fmt: skip

_C = "kafka-console-producer.sh --bootstrap-server localhost:9092 --topic"
CONSOLE = (
    Line(f"echo 'This is my first event' | bin/{_C} quickstart-events", values("This is my first event")),
    Line(f"printf 'a\\nb\\n' | {_C} t", values("a", "b")),
    Line("echo a | kafka-console-producer.sh --broker-list localhost:9092 --topic t", values("a")),
    Line("echo a | kafka-console-producer --topic t --bootstrap-server localhost:9092", values("a")),
    Line("echo a | kafka-console-producer --topic=t --bootstrap-server=localhost:9092", values("a")),
    Line(f"{_C} t < notes.txt", values("first line", "second line")),
    Line(f"cat orders.json | {_C} t", values('{"id":1}', '{"id":2}')),
    Line(f"printf 'a\\n\\nb\\n' | {_C} t", values("a", "", "b")),
    Line(f"printf 'k\\tv\\n' | {_C} t --property parse.key=true", values("v", key="k")),
    Line(f"echo k:v | {_C} t --property parse.key=true --property key.separator=:", values("v", key="k")),
    Line(f"echo k:v:w | {_C} t --property 'parse.key=true' --property 'key.separator=:'", values("v:w", key="k")),
    Line(f"echo 'k, v' | {_C} t --reader-property parse.key=true --reader-property key.separator=', '", values("v", key="k")),
    Line(f"echo k:v | {_C} t --reader-config reader.properties", values("v", key="k")),
    Line(f"echo 'k|v' | {_C} t --reader-config reader.properties --reader-property key.separator='|'", values("v", key="k")),
    Line(f"printf 'k:v\\nnone\\n' | {_C} t --property parse.key=true --property key.separator=: --property ignore.error=true",
         (*values("v", key="k"), *values("none"))),
    Line(f"printf 'h1:v1,h2:v2\\tvalue\\n' | {_C} t --property parse.headers=true", values("value"),
         (("h1", b"v1"), ("h2", b"v2"))),
    Line(f"printf 'h1:v1\\tk\\tvalue\\n' | {_C} t --property parse.headers=true --property parse.key=true",
         values("value", key="k"), (("h1", b"v1"),)),
    Line(f"echo 'h1=v1;h2=v2|value' | {_C} t --property parse.headers=true --property headers.delimiter='|' "
         "--property headers.separator=';' --property headers.key.separator='='", values("value"),
         (("h1", b"v1"), ("h2", b"v2"))),
    Line(f"echo k:NULL | {_C} t --property parse.key=true --property key.separator=: --property null.marker=NULL",
         ((b"k", None),)),
    Line(f"echo NULL:v | {_C} t --property parse.key=true --property key.separator=: --property null.marker=NULL",
         ((None, b"v"),)),
    Line(f"printf 'a\\nb\\n' | {_C} t --sync", values("a", "b")),
    Line(f"echo a | {_C} t --timeout 100", values("a")),
    Line(f"echo a | {_C} t --sync --timeout 1", values("a")),
    Line(f"echo a | {_C} t --compression-codec", values("a")),
    Line(f"echo a | {_C} t --compression-codec gzip", values("a")),
    Line(f"echo a | {_C} t --compression-codec=snappy", values("a")),
    Line(f"echo a | {_C} t --compression-codec lz4", values("a")),
    Line(f"echo a | {_C} t --compression-codec zstd", values("a")),
    Line(f"echo a | {_C} t --compression-codec none", values("a")),
    Line(f"echo a | {_C} t --batch-size 200", values("a")),
    Line(f"echo a | {_C} t --max-partition-memory-bytes 32768", values("a")),
    Line(f"echo a | {_C} t --max-memory-bytes 33554432", values("a")),
    Line(f"echo a | {_C} t --max-block-ms 60000", values("a")),
    Line(f"echo a | {_C} t --metadata-expiry-ms 300000", values("a")),
    Line(f"echo a | {_C} t --message-send-max-retries 3", values("a")),
    Line(f"echo a | {_C} t --retry-backoff-ms 100", values("a")),
    Line(f"echo a | {_C} t --request-timeout-ms 1500", values("a")),
    Line(f"echo a | {_C} t --socket-buffer-size 102400", values("a")),
    Line(f"echo a | {_C} t --request-required-acks all", values("a")),
    Line(f"echo a | {_C} t --request-required-acks -1", values("a")),
    Line(f"echo a | {_C} t --request-required-acks 1 --producer-property enable.idempotence=false", values("a")),
    Line(f"echo a | {_C} t --producer-property acks=all --producer-property linger.ms=10", values("a")),
    Line(f"echo a | {_C} t --command-property acks=all", values("a")),
    Line(f"echo a | {_C} t --producer.config producer.properties", values("a")),
    Line(f"echo a | {_C} t --command-config producer.properties", values("a")),
    Line(f"echo a | {_C} t --producer.config producer.properties --producer-property client.id=me", values("a")),
    Line(f"echo a | {_C} t --line-reader org.apache.kafka.tools.LineMessageReader", values("a")),
    Line(f"echo a | {_C} t --line-reader 'kafka.tools.ConsoleProducer$LineMessageReader'", values("a")),
    Line("kafka-console-producer.sh --version", (), shows="forebay "),
    Line("kafka-console-producer.sh --help", (), shows="--reader-property"),
    Line(f"printf 'a\\r\\nb\\rc\\r\\r\\n' | {_C} t", values("a", "b", "c", "")),
    Line(f"printf 'one\\n\\377\\n' | {_C} t", values("one"), code=1),
    Line("echo a | kafka-console-producer --topic t --boot localhost:9092 --max-b 60000", values("a")),
    Line("echo a | kafka-console-producer -topic t -bootstrap-server=localhost:9092", values("a")),
    Line("echo k:v | kafka-console-producer --topic t --boot localhost:9092 --reader-p parse.key=true --prop key.separator=:",
         values("v", key="k")),
    Line(f"printf 'k:v' | {_C} t --property parse.key=true --property 'key.separator=\\t'", (), code=1),
    Line(f"echo NUL | {_C} t --property null.marker=NUL", ((None, None),)),
    Line(f"printf '\\n' | {_C} t --property null.marker=", ((None, None),)),
    Line(f"echo 'h:1|v' | {_C} t --property parse.headers=true --property headers.delimiter='|' "
         "--property headers.separator='.'", refused="it is a regular expression there"),
    Line(f"echo v | {_C} t --property headers.separator=:", refused="may not be equal"),
    Line(f"{_C} t --line-reader com.example.MyReader", refused="--line-reader 'com.example.MyReader' is a Java class"),
    Line(f"{_C} t --property parse.keys=true", refused="did you mean 'parse.key'"),
)  # fmt: skip
