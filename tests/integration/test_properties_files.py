"""Properties files against ``java.util.Properties``: the table of the unit test, and random texts."""

from __future__ import annotations

import base64
import random
import subprocess
from pathlib import Path

from tests.property.frames import printed_seed
from tests.support.pace import HANG_S
from tests.unit.test_config_properties import OF_JAVA, read
from tools.kafka.jars import java

TEXTS = 4000
PROGRAM = Path(__file__).parents[1] / "support" / "PropertiesFiles.java"
SIGNS = (
    "a",
    "b",
    "u",
    "1",
    "=",
    ":",
    " ",
    "\t",
    "\f",
    "#",
    "!",
    "\n",
    "\r",
    "\r\n",
    "é",
    "😀",
    "\0",
    "\v",
    "\x85",
    "\xa0",
)
ESCAPES = (r"\u0041", r"\ud83d\ude00", r"\ud83d", r"\u12", r"\uzz", r"\u", r"\u0020", r"\u005c", r"\u000a", r"\U0041")
OTHERS = (
    "\\",
    r"\n",
    r"\t",
    r"\r",
    r"\f",
    r"\=",
    r"\:",
    r"\ ",
    r"\\",
    r"\#",
    "\\\n",
    "\\\r\n",
    "\\\r",
    "  # x\n",
    "\u2028",
)


def theirs(line: str) -> dict[str, str] | None:
    if line == "error":
        return None
    parts = [
        "" if part == "-" else base64.b64decode(part).decode("utf-16-be", "surrogatepass") for part in line.split()
    ]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_as_java_reads_it() -> None:
    dice = random.Random(printed_seed())
    made = ("".join(dice.choices(SIGNS + ESCAPES + OTHERS, k=dice.randrange(1, 14))) for _ in range(TEXTS))
    texts = [*OF_JAVA, *made]
    given = "".join(base64.b64encode(text.encode()).decode() + "\n" for text in texts)
    done = subprocess.run(
        [java(), str(PROGRAM)], input=given, capture_output=True, text=True, timeout=HANG_S, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answers = [theirs(line) for line in done.stdout.split("\n")[:-1]]
    assert answers[: len(OF_JAVA)] == list(OF_JAVA.values())
    differ = [(text, read(text), java) for text, java in zip(texts, answers, strict=True) if read(text) != java]
    assert differ == [], f"{len(differ)} of {len(texts)}"
    assert None in answers and sum(answer is not None for answer in answers) > TEXTS // 4, "both kinds are tried"
