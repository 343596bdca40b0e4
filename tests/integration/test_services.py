"""The services of demo/services as a user starts them; each has its packages in a folder of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from forebay.testing import EmbeddedBroker
from tests.integration.workload import WAIT_S
from tests.support.own_packages import install
from tests.support.readme import ROOT
from tools.ports import free_ports

pytestmark = pytest.mark.rest("installs the service's packages")


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return install(tmp_path_factory.mktemp("packages"), "django>=5.2,<6")


@pytest.fixture
def service(packages: dict[str, str], embedded: EmbeddedBroker) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The address of the running service, and its process."""
    [port] = free_ports(1)
    environment = {**packages, "KAFKA_BOOTSTRAP_SERVERS": embedded.bootstrap_servers}
    program = str(ROOT / "demo" / "services" / "django_orders.py")
    process = subprocess.Popen(
        [sys.executable, "-u", program, "runserver", "--noreload", f"127.0.0.1:{port}"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        seen = []
        for line in process.stdout:
            seen.append(line)
            if "Quit the server" in line:
                break
        assert process.poll() is None, "".join(seen)
        yield f"http://127.0.0.1:{port}/orders", process
    finally:
        process.kill()
        process.communicate()


def post(address: str, body: bytes) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(urllib.request.Request(address, data=body), timeout=WAIT_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_an_order_is_stored_and_a_refusal_is_an_answer(
    service: tuple[str, subprocess.Popen[str]], embedded: EmbeddedBroker
) -> None:
    address, process = service
    embedded.create_topic("orders", 1)
    assert post(address, b"order 41") == (200, '{"partition": 0, "offset": 0}')
    assert [record.value for record in embedded.records("orders")] == [b"order 41"]
    status, text = post(address, b"x" * 1_100_000)
    assert status == 503 and "max.request.size" in text
    process.send_signal(signal.SIGTERM)
    assert process.wait(WAIT_S) == 128 + signal.SIGTERM
