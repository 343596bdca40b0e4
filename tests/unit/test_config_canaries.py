"""Secrets in words: each option that is or may hold one, given in every malformed shape, is in no message.

What is looked at: the text of the error, of its causes and contexts, the locals of each frame that is not a test's, the
log at DEBUG, and what the configuration shows of itself.
"""

from __future__ import annotations

import logging
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from forebay import AdminClient, KafkaProducer
from forebay._assembly import Surroundings
from forebay._network.handshake import Handshakes
from forebay._network.proxy import Proxy
from forebay._network.sasl.mechanism import Blocking
from forebay.cli.failure import CommandError
from forebay.cli.pipeline import parse_overrides
from forebay.cli.properties import pairs
from forebay.compat.aiokafka import AIOKafkaProducer, helpers
from forebay.compat.confluent_kafka import Producer
from forebay.compat.kafka import KafkaProducer as KafkaPythonProducer
from forebay.config import ProducerConfig, Secret, table
from forebay.config._aliases import ALIASES
from forebay.config._door import door
from forebay.config._sources import config_of, read_properties
from forebay.errors import KafkaError, SaslAuthenticationError
from forebay.producer.process import per_process
from forebay.spark.jobs.loading import load
from forebay.spark.options import parse
from forebay.spark.secrets import check, in_task
from forebay.testing.resolver import StaticResolver
from tests.fakes.world import World

CANARY = "Kanari3nvogel7"
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
TOKEN = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
IAM = "software.amazon.msk.auth.iam.IAMLoginModule required"
KERBEROS = "com.sun.security.auth.module.Krb5LoginModule required"

JAAS = [
    f"{module} {rest}"
    for module in (LOGIN, SCRAM, TOKEN, IAM, KERBEROS, "x.LdapLoginModule required", CANARY)
    for rest in (
        f"{CANARY};",
        f'"{CANARY}";',
        f'username="ann" password="{CANARY}"',
        f'username="ann" password="a"{CANARY}"b";',
        f'username="ann" password="{CANARY};',
        f"username=ann password={CANARY}!;",
        f'username="ann" password="x" {CANARY}="y";',
        f'username="ann" password "{CANARY}";',
        f'username="ann" password="{CANARY}"; {CANARY};',
        f'username="{CANARY}" serviceName="{CANARY}" useTicketCache=true;',
        f'clientId="a" clientSecret="{CANARY}" extension_{CANARY}="x";',
        f'ssl.keystore.password="{CANARY}" ssl.keystore.location="/none" clientId="a" clientSecret="b";',
        f'ssl.{CANARY}="x" clientId="a" clientSecret="b";',
        f'useKeyTab=true keyTab="-----BEGIN {CANARY}" serviceName="k";',
    )
]
PEM = f"-----BEGIN PRIVATE KEY-----\n{CANARY}\n-----END PRIVATE KEY-----\n"
OTHER_SHAPES: list[Any] = [
    CANARY,
    f"  {CANARY}\n",
    CANARY.encode(),
    [CANARY],
    (CANARY, CANARY),
    {CANARY: CANARY},
    {CANARY},
    f"{CANARY}\0",
    f"{CANARY}\udcff",
    f"{CANARY}, {CANARY}",
    f"${{env:{CANARY}",
    f"{CANARY}${{env:FOREBAY_NOT_THERE}}",
    f"${{file:/none:{CANARY}",
    PEM,
    PEM.replace("\n", ""),
    PEM.replace("\n", "\\n"),
    PEM.encode(),
    f"MII{CANARY * 8}",
    f"LS0t{CANARY * 8}",
    CANARY * 1000,
    f"http://ann:{CANARY}@proxy:1/x",
    f"http://ann:{CANARY}@proxy",
    f"http://{CANARY}@proxy:1",
    f"http://{CANARY}:@proxy:1",
    f"http://ann:{CANARY}/x@proxy:1",
    f"https://ann:{CANARY}@proxy:1",
    f"socks5://ann:{CANARY}@[proxy:1",
    f"socks5://ann:{CANARY * 30}@proxy:1",
    f"{CANARY}://proxy:1",
    f"ann:{CANARY}@proxy:1",
    f"https://idp/token?client_secret={CANARY}",
    f"file://ann:{CANARY}@host/path",
    f"SASL_SSL://ann:{CANARY}@host:9092",
    f"password={CANARY}",
    JAAS[0],
]
SHAPES = [*OTHER_SHAPES, *JAAS]
PLAIN = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "ann", "sasl.password": "x"}
OAUTH = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.token.endpoint.url": "https://idp/token",
    "sasl.oauthbearer.client.credentials.client.id": "orders",
    "sasl.oauthbearer.client.credentials.client.secret": "x",
}
ALONE: Mapping[str, Mapping[str, str]] = {
    "PLAIN": PLAIN,
    "SCRAM": {**PLAIN, "sasl.mechanism": "SCRAM-SHA-512"},
    "OAUTHBEARER": OAUTH,
    "MSK": {"security.protocol": "SASL_SSL", "sasl.mechanism": "AWS_MSK_IAM"},
    "GSSAPI": {"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"},
    "providers": {**PLAIN, "config.providers": "env,file,directory"},
    "plaintext": {},
}
"""What stands beside the option."""
WITH_ADDRESSES = ("bootstrap.servers", "broker.address.map", "sasl.oauthbearer.token.endpoint.url")
IN_ADDRESSES = [shape for shape in SHAPES if isinstance(shape, str) and "@" in shape]
IN_PATHS = [shape for shape in SHAPES if isinstance(shape, (str, bytes)) and shape[:3] in ("---", "MII", "LS0", b"---")]
NAMES = (f"sasl.password:{CANARY}", f"sasl.password {CANARY}", f"sasl_password:{CANARY}", CANARY, f"{CANARY}=x")
MISSPELT = ("sasl.pasword", "ssl_keystore_paswordd", "passphrase", "my.secret", "token", "private_key")


def given(beside: str) -> Iterator[tuple[str, Any]]:
    """Each option and alias with each shape that may hold its secret; then names that are none.

    Beside anything but PLAIN those alone that it looks at.
    """
    spelled = {option.name: option for option in table()}
    for name in (*spelled, *ALIASES):
        option = spelled[ALIASES[name].name if name in ALIASES else name]
        if beside != "PLAIN" and not name.startswith("sasl.jaas" if beside in ("GSSAPI", "MSK") else "sasl."):
            continue
        if option.secret:
            yield from ((name, shape) for shape in (SHAPES if option.name == "sasl.jaas.config" else OTHER_SHAPES))
        elif option.path:
            yield from ((name, shape) for shape in IN_PATHS)
        elif option.name in WITH_ADDRESSES:
            yield from ((name, shape) for shape in IN_ADDRESSES)
    yield from ((name, "") for name in NAMES)
    yield from ((name, shape) for name in MISSPELT for shape in (CANARY, CANARY.encode(), [CANARY]))


def leaks(error: BaseException) -> list[str]:
    """Where the canary is found in an error, what is behind it, and their frames."""
    found: list[str] = []
    left: list[tuple[str, BaseException]] = [("error", error)]
    seen: set[int] = set()
    while left:
        where, one = left.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        shown = [repr(one), str(one), repr(one.args), repr(getattr(one, "context", None))]
        found += [f"{where}: {text[:100]}" for text in shown if CANARY in text]
        for frame, line in traceback.walk_tb(one.__traceback__):
            if not str(frame.f_globals.get("__name__")).startswith(("tests.", "_pytest", "pytest")):
                held = {name: value for name, value in frame.f_locals.items() if CANARY in safe(value)}
                found += [f"{where}: {frame.f_code.co_filename}:{line} {name}" for name in held]
        left += [(f"{where}, cause", one.__cause__)] if one.__cause__ is not None else []
        left += [(f"{where}, context", one.__context__)] if one.__context__ is not None else []
    return found


def safe(value: object) -> str:
    try:
        return repr(value)
    except Exception:  # noqa: BLE001 - a frame may hold what is made by half
        return ""


def no_leak(call: Callable[[], object]) -> BaseException | None:
    """The error of a call, in which the canary must not be."""
    try:
        call()
    except Exception as error:  # noqa: BLE001 - any error must not have it
        found = leaks(error)
        assert found == [], (f"{type(error).__name__}: {error}", found)
        return error
    return None


@pytest.mark.parametrize("beside", ALONE)
def test_an_option_in_no_shape_is_in_a_message(beside: str, caplog: pytest.LogCaptureFixture) -> None:
    refused = 0
    with caplog.at_level(logging.DEBUG):
        for name, value in given(beside):
            options = {"bootstrap.servers": "h:1", **ALONE[beside]}
            if name in ("sasl.jaas.config",):
                options = {key: kept for key, kept in options.items() if key not in ("sasl.username", "sasl.password")}
            options = {key: kept for key, kept in options.items() if key != name} | {name: value}

            def make(options: dict[str, Any] = options) -> None:
                made = ProducerConfig(options)
                shown = made.describe() + repr(made) + repr(made.originals()) + "".join(map(str, made.notes))
                assert CANARY not in shown or isinstance(value, dict), (name, value)  # noqa: B023

            refused += no_leak(make) is not None
    assert refused > 50 and CANARY not in caplog.text


ASSEMBLED = [
    *(("sasl.jaas.config", text) for text in JAAS),
    *((name, PEM) for name in ("ssl.keystore.key", "ssl.keystore.certificate.chain", "ssl.truststore.certificates")),
    *(("proxy.url", shape) for shape in IN_ADDRESSES),
    *(("sasl.oauthbearer.token.endpoint.url", shape) for shape in IN_ADDRESSES),
    ("sasl.oauthbearer.extensions", f"{CANARY}"),
    ("ssl.keystore.password", CANARY),
    ("ssl.key.password", CANARY),
    ("ssl.truststore.password", CANARY),
]


@pytest.mark.parametrize("beside", ["PLAIN", "SCRAM", "OAUTHBEARER"])
def test_nor_where_the_parts_are_put_together(beside: str, caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    (tmp_path / "store").write_bytes(b"\xfe\xed\xfe\xed" + b"\0" * 40)
    (tmp_path / "pem").write_text(PEM)
    world = World(known=False)
    around = Surroundings(
        clock=world.clock, random=lambda: 0.5, selector=lambda: world.selector, resolver=StaticResolver
    )
    refused = 0
    with caplog.at_level(logging.DEBUG):
        for name, value in ASSEMBLED:
            options: dict[str, Any] = {"bootstrap.servers": "h:1", **ALONE[beside], name: value}
            if name.endswith("password"):
                store = "truststore" if "truststore" in name else "keystore"
                options[f"ssl.{store}.location"] = str(tmp_path / ("pem" if "key.password" in name else "store"))
            if name == "sasl.jaas.config":
                options.pop("sasl.username", None), options.pop("sasl.password", None)
            if name.startswith("ssl.keystore.") and value == PEM:
                options |= {"ssl.keystore.key": PEM, "ssl.keystore.certificate.chain": PEM}
            error = no_leak(lambda options=options: door()(type(world.producer)._with)(around, options))  # type: ignore[misc]
            refused += isinstance(error, KafkaError)
    assert refused > 40 and CANARY not in caplog.text


DOORS: list[Callable[[dict[str, Any]], object]] = [
    KafkaProducer,
    AdminClient,
    per_process,
    lambda options: KafkaProducer(**{name.replace(".", "_"): value for name, value in options.items()}),
    lambda options: ProducerConfig({"bootstrap.servers": "h:1"}).replace(options),
    lambda options: ProducerConfig.from_env("K_", {f"K_{name}": str(value) for name, value in options.items()}),
    lambda options: config_of(options, dict.fromkeys(options, "here")),
    Producer,
    lambda options: Producer(**options),
    lambda options: KafkaPythonProducer(**{name.replace(".", "_"): value for name, value in options.items()}),
    lambda options: parse({f"kafka.{name}": value for name, value in options.items()} | {"topic": "t"}),
    lambda options: check(options, False),
]
WRONG: list[dict[str, Any]] = [
    {"sasl.password": CANARY, "acks": "7"},
    {"sasl.password": CANARY, "sasl.username": "ann", "security.protocol": "SASL_SSL"},
    {"sasl.jaas.config": CANARY, "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"},
    {"ssl.keystore.location": PEM, "security.protocol": "SSL"},
    {"ssl.keystore.key": PEM, "security.protocol": "SSL"},
    {"sasl.pasword": CANARY},
    {f"sasl.password:{CANARY}": ""},
    {"proxy.url": f"ftp://ann:{CANARY}@h:1"},
]


@pytest.mark.parametrize("options", WRONG, ids=lambda options: next(iter(options)).partition(":")[0])
@pytest.mark.parametrize("number", range(len(DOORS)))
def test_each_door_hides_what_it_is_given(number: int, options: dict[str, Any]) -> None:
    error = no_leak(lambda: DOORS[number]({"bootstrap.servers": "127.0.0.1:1", **options}))
    assert error is not None or (number == 5 and "" in options.values()), "an empty variable counts as not set"


def test_aiokafka_s_door() -> None:
    more: dict[str, Any] = {"security_protocol": "SASL_SSL", "sasl_plain_username": "u", "sasl_plain_password": CANARY}
    assert no_leak(lambda: AIOKafkaProducer(**more)) is not None
    error = no_leak(lambda: helpers.create_ssl_context(certfile="/not/there", password=CANARY))
    assert isinstance(error, OSError)


@pytest.mark.parametrize(
    "text",
    [
        f"sasl.password={CANARY}\nacks=7",
        f"sasl.password = {CANARY}\\\nu12\nx=\\u12",
        f"{CANARY}",
        f"sasl.password:{CANARY}\nnothing=1",
        PEM.replace("-----BEGIN", "ssl.keystore.key=-----BEGIN"),
        f'sasl.jaas.config={LOGIN}\n  username="ann"\n  password="{CANARY}";',
        f"=\\u12{CANARY}",
    ],
)
def test_a_file_of_options_shows_nothing(text: str, tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text(f"bootstrap.servers=h:1\n{text}\n")
    error = no_leak(lambda: ProducerConfig.from_properties(path))
    assert isinstance(error, KafkaError) and "client.properties:" in str(error)
    no_leak(lambda: read_properties(path))


@pytest.mark.parametrize("text", [f"sasl.password:{CANARY}", CANARY, f"={CANARY}", f"sasl.password {CANARY}"])
def test_an_argument_without_its_sign_shows_nothing(text: str) -> None:
    for call in (lambda: pairs([text], "-X"), lambda: parse_overrides([text])):
        error = no_leak(call)
        assert isinstance(error, (CommandError, KafkaError)) and str(len(text)) in str(error)


JOB = '[source]\nformat="csv"\npath="."\n[sink]\ntopic="t"\n[value]\nformat="avro"\n[map]\n'


@pytest.mark.parametrize(
    "text",
    [
        f'[producer]\n"bootstrap.servers"="h:1"\n"sasl.password"=["{CANARY}", 1]',
        f'[producer]\n"bootstrap.servers"="h:1"\n"sasl.pasword"="{CANARY}"',
        f'[producer]\n"bootstrap.servers"="h:1"\n"sasl.password"="{CANARY}"\nacks="7"',
        f'[producer]\n"bootstrap.servers"="h:1"\n[registry]\nurl="ftp://ann:{CANARY}@h"',
        f'[producer]\n"bootstrap.servers"="h:1"\n[registry]\nurl="http://ann:{CANARY}/x@h"',
        f'[producer]\n"bootstrap.servers"="h:1"\n[registry]\nurl="http://h"\n"basic.auth.user.info"="{CANARY}"',
        f'[producer]\n"bootstrap.servers"="h:1"\n[registry]\nurl="http://h"\n"bearer.auth.token"=["{CANARY}", 1]',
        f'[producer]\n"bootstrap.servers"="h:1"\n[registry]\nurl="http://u:{CANARY}@h"\n"bearer.auth.token"="x"',
        f'[producer]\n"sasl.password"="{CANARY}',
    ],
)
def test_a_job_file_shows_nothing(text: str, tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    path.write_text(JOB + text)
    assert isinstance(no_leak(lambda: load(path)), KafkaError)
    assert no_leak(lambda: load(path, {"producer.sasl.password": CANARY, "producer.acks": "7"})) is not None


def test_spark_shows_nothing() -> None:
    assert no_leak(lambda: in_task({"ssl.keystore.location": PEM})) is not None
    assert no_leak(lambda: parse({"topic": "t", "kafka.bootstrap.servers": "h:1", f"sasl.password:{CANARY}": ""}))


# -- later -----------------------------------------------------------------------------------------------------


def test_work_of_a_login_leaves_no_frames() -> None:
    def ours() -> None:
        exec(  # a frame of the package, with a secret in it
            compile("def read(): text = secret; raise failure\nread()", "x", "exec"),
            {"__name__": "forebay._network.oidc", "secret": CANARY, "failure": SaslAuthenticationError("no")},
        )

    work = Blocking("the token", ours)
    work.run()
    assert isinstance(work.error, SaslAuthenticationError) and leaks(work.error) == []


def test_a_refused_token_is_in_no_frame() -> None:
    lost: list[BaseException] = []
    states = SimpleNamespace(nodes={})
    handshakes = Handshakes(
        states, None, SimpleNamespace(files=None), lambda: 0.5,  # type: ignore[arg-type]
        transmit=lambda *_: None, lose=lambda state, error, now: lost.append(error), check_at=lambda at: None,
    )  # fmt: skip

    def step() -> Any:
        exec(
            compile("def authenticate(): token = secret; raise failure\nauthenticate()", "x", "exec"),
            {"__name__": "forebay._network.handshake", "secret": CANARY, "failure": SaslAuthenticationError("no")},
        )

    handshakes._advance(SimpleNamespace(state=None, channel=None, node=None), step, 0.0)  # type: ignore[arg-type]
    assert len(lost) == 1 and leaks(lost[0]) == []


@pytest.mark.parametrize("kind", ["socks5", "http"])
def test_a_proxy_that_refuses_leaves_no_login_in_its_frames(kind: str) -> None:
    tunnel = Proxy(kind, "p", 1, "ann", Secret(CANARY)).tunnel(lambda: ("h", 1), None)
    answers = [b"\5\2", b"\1\1"] if kind == "socks5" else [b"HTTP/1.1 407 no\r\n\r\n"]

    def talk() -> None:
        tunnel.start()
        for answer in answers:
            tunnel.feed(memoryview(answer))
            tunnel.shake_hands()

    error = no_leak(talk)
    assert isinstance(error, KafkaError) and "'ann'" not in str(error)


def test_new_credentials_that_are_refused() -> None:
    world = World(known=False)
    for wrong in (CANARY, f"{CANARY}\udcff", CANARY.encode()):
        assert no_leak(lambda wrong=wrong: world.producer.set_sasl_credentials("ann", wrong)) is not None  # type: ignore[misc]


def test_a_file_of_values_beside_the_wanted_one() -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".properties") as file:
        file.write(f"other={CANARY}\n")
        file.flush()
        options = {"config.providers": "file", "ssl.keystore.location": f"${{file:{file.name}:missing}}"}
        producer = {"bootstrap.servers": "127.0.0.1:1", "security.protocol": "SSL", **options}
        assert isinstance(no_leak(lambda: KafkaProducer(producer)), KafkaError)
