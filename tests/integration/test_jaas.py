"""``sasl.jaas.config`` against Kafka's own parser: the same entries, or an error of both."""

from __future__ import annotations

import base64
import random
import subprocess
from pathlib import Path

from forebay.config._jaas import MODULES, parse_jaas
from forebay.errors import ConfigError
from tests.property.frames import printed_seed
from tests.support.fixtures import kafka
from tests.support.pace import HANG_S
from tools.kafka import RealKafka

__all__ = ["kafka"]

TEXTS = 400
PROGRAM = Path(__file__).parents[1] / "support" / "Jaas.java"
WORDS = ("username", "password", "a.b", "_x", "$y", "-z", "user1", "tokenauth", "é", "clientId")
VALUES = ("alice", "secret", "a.b-c_d", "true", '""', '"a b"', "'single'", '"q\\"x"', '"back\\\\slash"', '"n\\nt\\t"')
ODD = ('"\\101\\7\\18"', '"é ü"', "'a\"b'", '"a\'b"', '"//no comment"', '"x=y;z"', "12", "1.5e3", "a12", '"\\q"', "ü")
SPACES = (" ", "  ", "\n", "\t", " // note\n", " /* note */ ", "\r\n")
FLAGS = ("required", "Requisite", "SUFFICIENT", "optional")
PIECES = ("=", ";", '"', "'", "/", "//", "/*", "*/", "#", "\\", "a", "1", " ", "\n", ".", "-", "{", "é")


def valid(dice: random.Random) -> str:
    """An entry as people write it."""

    def space() -> str:
        return dice.choice(SPACES)

    name = dice.choice(("", "org.apache.kafka.common.security.plain.", "shaded.x.")) + dice.choice(MODULES)
    text = f"{dice.choice(('', space()))}{name}{space()}{dice.choice(FLAGS)}"
    for _ in range(dice.randrange(4)):
        sign = dice.choice(("=", " = ", "=\n"))
        text += f"{space()}{dice.choice(WORDS)}{sign}{dice.choice(VALUES + ODD)}"
    return text + dice.choice(("", space())) + ";" + dice.choice(("", space()))


def text_of(dice: random.Random) -> str:
    """An entry, in half of the cases with a mishap or two."""
    text = valid(dice)
    for _ in range(dice.choice((0, 0, 1, 2))):
        at = dice.randrange(len(text) + 1)
        text = text[:at] + dice.choice(PIECES) + text[at + dice.randrange(3) :]
    return text


def ours(text: str) -> tuple[str, dict[str, str]] | None:
    """The module's simple name and its options; None: refused."""
    try:
        module = parse_jaas(text)
    except ConfigError:
        return None
    return module.name, {name: value.reveal() for name, value in module.options.items()}


def theirs(line: str) -> tuple[str, dict[str, str]] | None:
    """The same of Java's answer; entries that only we refuse (two, none, unknown modules) count as refused."""
    entries = line.split("|")
    if line == "error" or not line or len(entries) != 1:
        return None
    name, *options = [base64.b64decode(part).decode().removesuffix("\n") for part in entries[0].split(" ")]
    simple = name.rpartition(".")[2]
    if simple not in MODULES:
        return None
    return simple, dict(zip(options[::2], options[1::2], strict=True))


def test_as_java_reads_it(kafka: RealKafka) -> None:
    dice = random.Random(printed_seed())
    texts = [text_of(dice) for _ in range(TEXTS)]
    given = "\n".join(base64.b64encode(text.encode()).decode() for text in texts)
    done = subprocess.run(
        kafka.tool_command(str(PROGRAM)), input=given, capture_output=True, text=True, timeout=HANG_S, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stdout.splitlines()
    assert len(lines) == TEXTS
    differ = [
        (text, ours(text), theirs(line)) for text, line in zip(texts, lines, strict=True) if ours(text) != theirs(line)
    ]
    taken = sum(theirs(line) is not None for line in lines)
    assert differ == [], f"{len(differ)} of {TEXTS}"
    assert TEXTS // 4 < taken < TEXTS, "both kinds are tried"
