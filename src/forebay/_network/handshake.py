"""What is said on a connection before it is ready, as a generator: it yields requests and gets their responses.

Sans-I/O: the client sends what is yielded, hands in each answer, and takes the return value as "ready".
Authentication will be a second such generator that runs before this one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import cast

from forebay._network.broker_versions import BrokerVersions
from forebay._network.inflight import ClientRequest, ClientResponse
from forebay._protocol.api_versions import (
    ApiVersionsResponse,
    decode_api_versions,
    encode_api_versions,
    fallback_version,
)
from forebay._protocol.versions import SUPPORTED, ApiKey
from forebay.errors import error_for

Handshake = Generator[ClientRequest, ClientResponse, BrokerVersions]


def check_versions(
    node_id: int, software_version: str, timeout_ms: float, on_complete: Callable[[ClientResponse], None]
) -> Handshake:
    """Asks what the broker can do: our newest ApiVersions first, then what it names instead (KIP-511).

    Args:
        on_complete: given to each request; it is the client's, and hands the response in here.

    Raises:
        KafkaError: the broker's error, if it is none that asking differently could mend.
    """
    version = SUPPORTED[ApiKey.API_VERSIONS][1]
    while True:
        response = yield ClientRequest(
            node_id,
            ApiKey.API_VERSIONS,
            version,
            version,
            lambda chosen: list(encode_api_versions(chosen, "forebay", software_version)),
            decode_api_versions,
            timeout_ms=timeout_ms,
            on_complete=on_complete,
            internal=True,
        )
        answer = cast("ApiVersionsResponse", response.body)
        error = error_for(answer.error_code)
        if error is None:
            return BrokerVersions(answer)
        lower = fallback_version(answer, version)
        if lower is None:
            raise error.with_context(api="ApiVersions", version=version)
        version = lower
