"""``python -m bench [NAME] ...``: runs one of the benches, the peers unless told."""

from __future__ import annotations

import sys

from bench import append, columns, instructions, latency, memory, page, peers, sender_cost, sink

BENCHES = {
    "peers": peers.main,
    "latency": latency.main,
    "sender": sender_cost.main,
    "append": append.main,
    "columns": columns.main,
    "instructions": instructions.main,
    "memory": memory.main,
    "sink": sink.main,
    "page": page.main,
}


def main() -> int:
    arguments = sys.argv[1:]
    if arguments and arguments[0] in BENCHES:
        return BENCHES[arguments[0]](arguments[1:])
    if arguments and not arguments[0].startswith("-"):
        print(f"bench: there is no bench {arguments[0]!r}, only {', '.join(BENCHES)}", file=sys.stderr)
        return 2
    return peers.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
