"""The interface of what gives tokens to OAUTHBEARER, as aiokafka has it."""

from __future__ import annotations

from abc import ABC, abstractmethod

__all__ = ["AbstractTokenProvider"]


class AbstractTokenProvider(ABC):
    """Gives a token each time a connection logs in."""

    @abstractmethod
    async def token(self) -> str:
        """The token; awaited on the producer's event loop."""

    def extensions(self) -> dict[str, str]:
        """What is sent along with the token; nothing by default."""
        return {}
