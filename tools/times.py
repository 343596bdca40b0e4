"""How long the parts of ``make demo`` took: each notes its time in the environment's folder, the last one shows them.

python tools/times.py FOLDER PART COMMAND...    runs a command and notes its time
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path


def note(folder: Path, part: str, seconds: float) -> None:
    """Adds a part's time; a part that runs again has its newest."""
    path = folder / "times.json"
    with open(path, "a") as file:
        file.write(json.dumps({"part": part, "seconds": round(seconds, 1), "at": round(time.time(), 1)}) + "\n")


def noted(folder: Path, since: float) -> dict[str, float]:
    """Seconds by part, of the parts that ended after ``since`` (s since 1970), in their order."""
    path = folder / "times.json"
    if not path.exists():
        return {}
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return {row["part"]: row["seconds"] for row in rows if row["at"] >= since}


def main(arguments: list[str]) -> int:
    """Runs the command; its time counts also if it fails."""
    folder, part, *command = arguments
    begun = time.monotonic()
    try:
        return subprocess.run(command, check=False).returncode
    except KeyboardInterrupt:
        return 130
    finally:
        note(Path(folder), part, time.monotonic() - begun)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
