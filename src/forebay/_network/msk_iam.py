"""Tokens for Amazon MSK with IAM, by Amazon's own signer (extra ``aws``); a helper thread runs this."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from forebay._network.tokens import Token, given_token
from forebay.errors import ConfigError, NetworkError

NAME = "the AWS signer (sasl.mechanism=AWS_MSK_IAM)"
_HOST = re.compile(r"\.kafka(?:-serverless)?\.([a-z]{2}(?:-[a-z]+)+-\d)\.amazonaws\.com(?:\.cn)?$")


class MskIam(NamedTuple):
    """Whose credentials are used; the signer finds them as all of Amazon's tools do."""

    region: str
    profile: str | None = None
    role: str | None = None
    session: str | None = None

    def fetch(self, wall: Callable[[], float]) -> Token:
        """A token; blocks.

        Raises:
            NetworkError: there are no credentials now, or AWS cannot be reached.
        """
        signer = load_signer()
        try:
            if self.role is not None:
                more = (self.session,) if self.session is not None else ()
                value, end_ms = signer.generate_auth_token_from_role_arn(self.region, self.role, *more)
            elif self.profile is not None:
                value, end_ms = signer.generate_auth_token_from_profile(self.region, self.profile)
            else:
                value, end_ms = signer.generate_auth_token(self.region)
        except Exception as error:
            raise NetworkError(f"no token: {NAME} gives none: {type(error).__name__}: {error}") from error
        return given_token((value, end_ms / 1000), NAME, wall())


def load_signer() -> Any:
    """The signer's module.

    Raises:
        ConfigError: the extra is not installed.
    """
    try:
        from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
    except ImportError as error:
        text = "sasl.mechanism=AWS_MSK_IAM needs the package aws-msk-iam-sasl-signer-python: pip install 'forebay[aws]'"
        raise ConfigError(text) from error
    return MSKAuthTokenProvider


def region_of(hosts: Iterable[str]) -> str | None:
    """The region in the name of one of MSK's brokers."""
    return next((found.group(1) for host in hosts if (found := _HOST.search(host.rstrip(".").lower()))), None)
