"""The helper for TLS."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
import trustme

from forebay.compat.aiokafka.helpers import create_ssl_context
from tools.certificates import identity


def test_a_context_checks_the_broker_and_shows_who_we_are(tmp_path: Path) -> None:
    authority = trustme.CA()
    ca = tmp_path / "ca.crt"
    ca.write_bytes(authority.cert_pem.bytes())
    client = identity(tmp_path, "client", authority.issue_cert("client.example"))
    context = create_ssl_context(cafile=ca, certfile=client.chain, keyfile=client.key, password="unused")
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert len(context.get_ca_certs()) == 1
    assert len(create_ssl_context(cadata=authority.cert_pem.bytes().decode()).get_ca_certs()) == 1
    with pytest.raises(OSError, match="No such file"):
        create_ssl_context(cafile=tmp_path / "absent")
