"""Asks pyright's language server for names of the core, as an editor does: ``python -m tools.ask_editor``.

For each name it prints the file of its definition, asked at a use in another file, and how many other files use it.  A
name whose definition or whose use is not found is an error: editors are blind there.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src" / "forebay"


class Asked(NamedTuple):
    """A name, the file that uses it, and the one that defines it."""

    name: str
    used_in: str
    defined_in: str


NAMES = (
    Asked("ProducerBatch", "_accumulator/drain.py", "_accumulator/batch.py"),
    Asked("PartitionQueue", "_accumulator/schedule.py", "_accumulator/topic.py"),
    Asked("BufferPool", "_accumulator/appender.py", "_accumulator/pool.py"),
    Asked("RecordsBuilder", "_accumulator/batch.py", "_accumulator/records.py"),
    Asked("BatchResult", "producer/_columns/batch_delivery.py", "_delivery/result.py"),
    Asked("RecordFuture", "producer/_path.py", "_delivery/future.py"),
    Asked("PartitionSequences", "_transactions/manager.py", "_transactions/sequences.py"),
    Asked("put_varint", "_records/batch_v2.py", "_runtime/primitives.py"),
    Asked("acquire", "_accumulator/pool.py", "_runtime/mutex.py"),
    Asked("chunk_size", "_accumulator/appender.py", "_accumulator/chunks.py"),
)
"""Classes, and at the end functions of C."""


class Server:
    """A language server that is asked one thing after the other."""

    def __init__(self, root: Path) -> None:
        command = [str(Path(sys.executable).with_name("pyright-langserver")), "--stdio"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root)
        self._number = 0
        folder = {"uri": root.as_uri(), "name": root.name}
        self.ask("initialize", processId=None, rootUri=root.as_uri(), workspaceFolders=[folder], capabilities={})
        self._tell("initialized")

    def _write(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        stream = self._process.stdin
        assert stream is not None
        stream.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        stream.flush()

    def _read(self) -> dict[str, Any]:
        stream = self._process.stdout
        assert stream is not None
        size = 0
        while (line := stream.readline().strip()) or not size:
            if line.lower().startswith(b"content-length:"):
                size = int(line.partition(b":")[2])
            elif not line and not size:
                raise RuntimeError("pyright-langserver has ended")
        return json.loads(stream.read(size))  # type: ignore[no-any-return]

    def _tell(self, method: str, **parameters: Any) -> None:
        self._write({"method": method, "params": parameters})

    def ask(self, method: str, **parameters: Any) -> Any:
        """The result; what the server itself asks meanwhile is answered with nothing."""
        self._number += 1
        self._write({"id": self._number, "method": method, "params": parameters})
        while True:
            message = self._read()
            if "method" in message and "id" in message:
                settings = message["method"] == "workspace/configuration"
                items = message.get("params", {}).get("items", ()) if settings else ()
                self._write({"id": message["id"], "result": [None for _ in items] if settings else None})
            elif message.get("id") == self._number:
                if "error" in message:
                    raise RuntimeError(f"pyright-langserver: {message['error'].get('message')}")
                return message.get("result")

    def open(self, path: Path) -> None:
        document = {"uri": path.as_uri(), "languageId": "python", "version": 1, "text": path.read_text("utf-8")}
        self._tell("textDocument/didOpen", textDocument=document)

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


def place_of(name: str, text: str) -> dict[str, int]:
    """Where a name is used last: behind the imports."""
    found = list(re.finditer(rf"\b{name}\b", text))[-1]
    before = text[: found.start()]
    return {"line": before.count("\n"), "character": found.start() - before.rfind("\n") - 1}


def definition(server: Server, asked: Asked) -> list[str]:
    """Where an editor goes from a use of the name: files below the package."""
    path = SOURCES / asked.used_in
    server.open(path)
    where = {"textDocument": {"uri": path.as_uri()}, "position": place_of(asked.name, path.read_text("utf-8"))}
    found = server.ask("textDocument/definition", **where) or []
    return [str(each.get("uri", each.get("targetUri"))).partition("/src/forebay/")[2] for each in found]


def users(server: Server, asked: Asked) -> set[str]:
    """The other files of the package in which an editor finds the name used.

    A class that users meet has a stub beside its module.  An editor takes the stub for its home.
    """
    path = SOURCES / asked.defined_in
    if path.with_suffix(".pyi").exists():
        path = path.with_suffix(".pyi")
    server.open(path)
    text = path.read_text("utf-8")
    at = re.search(rf"^(?:class|def) ({asked.name})\b", text, re.MULTILINE)
    if at is None:
        return set()
    before = text[: at.start(1)]
    position = {"line": before.count("\n"), "character": at.start(1) - before.rfind("\n") - 1}
    where = {"textDocument": {"uri": path.as_uri()}, "position": position}
    found = server.ask("textDocument/references", **where, context={"includeDeclaration": False}) or []
    files = {str(each["uri"]).partition("/src/forebay/")[2] for each in found}
    return {file for file in files if file and file != asked.defined_in}


def main() -> int:
    server = Server(ROOT)
    blind = 0
    try:
        for asked in NAMES:
            where, used = definition(server, asked), users(server, asked)
            seen = asked.defined_in in where and asked.used_in in used
            blind += not seen
            print(
                f"{asked.name}: {', '.join(where) or 'nowhere'}; {len(used)} other files{'' if seen else '; NOT SEEN'}"
            )
    finally:
        server.end()
    return int(blind > 0)


if __name__ == "__main__":
    sys.exit(main())
