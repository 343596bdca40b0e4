"""``python -m bench [NAME] ...``: runs one of the benches, or all of them and the table of targets."""

from __future__ import annotations

import sys
from collections.abc import Callable

from bench import earlier, page, sink, suite


def main() -> int:
    arguments = sys.argv[1:]
    if not arguments or arguments[0].startswith("-"):
        return suite.main(arguments)
    name, *rest = arguments
    if name in suite.PARTS:
        return suite.PARTS[name].main(rest)
    others: dict[str, Callable[[list[str]], int]] = {
        "suite": suite.main,
        "sink": sink.main,
        "page": page.main,
        "earlier": earlier.PART.main,  # needs a second checkout, so it is no step of the suite
    }
    if name in others:
        return others[name](rest)
    print(f"bench: there is no bench {name!r}, only {', '.join([*suite.PARTS, *others])}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
