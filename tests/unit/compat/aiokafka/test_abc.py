"""The interface of token providers."""

from __future__ import annotations

import asyncio

import pytest

from forebay.compat.aiokafka.abc import AbstractTokenProvider


class Provider(AbstractTokenProvider):
    async def token(self) -> str:
        return "token"


def test_a_provider_needs_a_token_and_nothing_else() -> None:
    assert asyncio.run(Provider().token()) == "token" and Provider().extensions() == {}
    with pytest.raises(TypeError, match="abstract"):
        AbstractTokenProvider()  # type: ignore[abstract]
