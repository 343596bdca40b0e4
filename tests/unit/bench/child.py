"""A measured process, for test_support."""

import json
import os
import time

from bench.support import SAMPLE_S, work_of_child

if __name__ == "__main__":
    work = work_of_child()
    if not work:
        raise SystemExit("no answer was asked for")
    # Long enough to be looked at more than once: the first look may come before Python is there.
    time.sleep(5 * SAMPLE_S)
    print("a line that is no result")
    print(json.dumps({"answer": work["answer"] + int(os.environ["FOREBAY_TEST_ADD"])}))
