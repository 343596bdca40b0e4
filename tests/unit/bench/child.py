"""A measured process, for test_support."""

import json
import os

from bench.support import work_of_child

if __name__ == "__main__":
    work = work_of_child()
    if not work:
        raise SystemExit("no answer was asked for")
    print("a line that is no result")
    print(json.dumps({"answer": work["answer"] + int(os.environ["FOREBAY_TEST_ADD"])}))
