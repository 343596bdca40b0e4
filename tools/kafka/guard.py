"""Starts one command and kills it when this process's standard input ends or its parent is gone.

Run as a script: ``guard.py PARENT_PID FOLDER LOG_FILE COMMAND...``.  It prints the command's process id and ends
with its status.  A JVM has no notion of a parent, and a test run that is killed must leave no brokers behind:
``FOLDER``, where their data are, is removed too when the parent is gone.
"""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys

CHECK_SECONDS = 0.2


def main(parent: int, folder: str, log: str, command: list[str]) -> int:
    with open(log, "ab") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    print(process.pid, flush=True)
    try:
        while process.poll() is None and os.getppid() == parent:
            if select.select([0], [], [], CHECK_SECONDS)[0] and not os.read(0, 4096):
                break
    finally:
        # The data is thrown away with the folder: nothing is gained by an orderly end.
        if process.poll() is None:
            process.kill()
        status = process.wait()
        if os.getppid() != parent:
            shutil.rmtree(folder, ignore_errors=True)
    return status


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:]) & 0xFF)
