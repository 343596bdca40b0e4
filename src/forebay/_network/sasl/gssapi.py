"""SASL GSSAPI (RFC 4752): Kerberos, without a security layer, as Kafka has it.

Tickets come from a keytab or from a ticket cache.  Each step may ask the KDC, so the helper thread does it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from forebay._network.sasl.gss_library import CredentialStore, GssError
from forebay._network.sasl.mechanism import Blocking, Exchange, Mechanism
from forebay._runtime.files import read_small
from forebay.errors import ConfigError, KafkaError, NetworkError, SaslAuthenticationError

NO_LAYER = 1
"""The bit for "no security layer" in a broker's last token."""
MAX_TOKEN = 64 * 1024
"""Bytes of a broker's token; a Kerberos ticket has at most this."""
KEYTAB_BEGINS = (b"\5\2", b"\5\1")
MAX_KEYTAB = 16 * 1024 * 1024
_BASE = -1765328384
"""Of the codes of krb5.h: those of the KDC (RFC 4120, 7.5.9) follow in order, then the library's."""
AWAY = {
    29: "the KDC is not available",
    37: "the clocks of this machine and of the KDC, or of the broker, differ too much",
    147: "the clocks of this machine and of the KDC differ too much",
    156: "no KDC answers",
}
"""Failures that may pass, by code."""
_HINTS = {
    6: "the KDC does not know the client: look at the principal",
    7: "the KDC does not know the service: look at sasl.kerberos.service.name and at the brokers' advertised host",
    24: "the keytab does not fit: it may be older than the principal's key",
    31: "the keytab does not fit: it may be older than the principal's key",
    32: "the ticket has expired: run kinit again, or use a keytab",
    141: "there is no ticket in the cache: run kinit, or use a keytab",
    181: "the keytab has no key of this principal",
    195: "there is no ticket cache: run kinit, or use a keytab",
}
"""Advice, by code."""
_NO_TICKETS = (141, 195)


class Gssapi(Mechanism):
    """One Kerberos identity.

    Args:
        library: a ``GssLibrary``.
        service: the name that brokers have in Kerberos, without host and realm.
        store: where the tickets come from.
        name_of: gives the name of a host that is an address; may block.
    """

    name = "GSSAPI"

    def __init__(self, library: Any, service: str, store: CredentialStore, name_of: Callable[[str], str] = str) -> None:
        self._library = library
        self._service = service
        self._store = store
        self._name_of = name_of

    @property
    def who(self) -> str:
        who = "the ticket cache's principal" if self._store.principal is None else f"principal {self._store.principal}"
        return who if self._store.keytab is None else f"{who} with keytab {self._store.keytab}"

    def __repr__(self) -> str:
        return f"<Gssapi {self._service}, {self.who}>"

    def exchange(self, host: str) -> Exchange:
        """The tokens of the context, one without text, and the answer about the layer."""
        if ":" in host or host.replace(".", "").isdigit():
            # Principals have names.  An address stands in bootstrap.servers, or is what a broker advertises.
            host = yield Blocking(f"the name of the address {host}", partial(self._name_of, host))
        service = f"{self._service}@{host}"
        tried = partial(_tried, service, self._store)

        def blocking(work: Callable[[], Any]) -> Blocking:
            return Blocking(f"a Kerberos ticket for {service}", partial(tried, work))

        context = yield blocking(partial(self._library.context, service, self._store))
        token = yield blocking(partial(context.step, b""))
        while not context.complete:
            answer = yield token
            token = yield blocking(partial(context.step, _short(answer)))
        if not context.mutual:
            raise SaslAuthenticationError(f"Kerberos: {service} did not prove who it is")
        offer = yield token
        plain = tried(partial(context.unwrap, _short(offer)))
        yield tried(partial(context.wrap, layer_answer(plain)))


def check_keytab(path: str, option: str) -> None:
    """Checks a keytab before a KDC is asked.

    Raises:
        ConfigError: it cannot be read, or is no keytab; names option and path.
    """
    try:
        begin = read_small(path, MAX_KEYTAB)[:2]
    except OSError as error:
        raise ConfigError(f"{option}: keytab {path}: {error.strerror or error}") from error
    if begin not in KEYTAB_BEGINS:
        raise ConfigError(f"{option}: keytab {path} is no keytab: it begins {begin!r}")


def layer_answer(offer: bytes) -> bytes:
    """Our answer to the broker's layers and its largest message: no layer, so no messages.

    Raises:
        SaslAuthenticationError: it is no offer, or the broker insists on a layer, which Kafka has not.
    """
    if len(offer) != 4:
        raise SaslAuthenticationError(f"Kerberos: the broker's last token has {len(offer)} bytes and not 4")
    if not offer[0] & NO_LAYER:
        raise SaslAuthenticationError(f"Kerberos: the broker insists on a security layer ({offer[0]:#x})")
    return bytes([NO_LAYER, 0, 0, 0])


def kerberos_error(service: str, store: CredentialStore, error: GssError) -> KafkaError:
    """The error of a failed call: it is tried again soon if the KDC or a clock may recover."""
    code = error.minor - _BASE
    if code in AWAY:
        return NetworkError(f"Kerberos: no ticket for {service}: {AWAY[code]} (Kerberos: {error})")
    hint = _HINTS.get(code, "Kerberos gives no ticket, or the broker's is not accepted")
    if store.keytab is not None and code in _NO_TICKETS:
        return SaslAuthenticationError(
            f"Kerberos: the login at {service} failed: keytab {store.keytab} has no key of {store.principal}"
        )
    return SaslAuthenticationError(f"Kerberos: the login at {service} failed: {hint} (Kerberos: {error})")


def _tried(service: str, store: CredentialStore, work: Callable[[], Any]) -> Any:
    try:
        return work()
    except GssError as error:
        raise kerberos_error(service, store, error) from error


def _short(token: bytes) -> bytes:
    if len(token) > MAX_TOKEN:
        raise SaslAuthenticationError(f"Kerberos: a token of {len(token)} bytes, allowed are {MAX_TOKEN}")
    return token
