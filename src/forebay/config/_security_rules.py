"""Rules between the options of TLS and SASL, and what follows from them together."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

from forebay.config._jaas import parse_jaas
from forebay.config._kerberos import kerberos_rule
from forebay.config._oauth import TOKEN_MECHANISMS, jaas_secret, token_source
from forebay.config._placeholders import Placeholder, looks_like_one
from forebay.config._secret import Secret, shown_value
from forebay.errors import ConfigError, IllegalArgumentError
from forebay.model._wire import NOT_UTF8, is_utf8

TLS_VERSIONS = ("TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3")
OLD_VERSIONS = TLS_VERSIONS[:2]
TLS_PROTOCOLS = ("SSL", "SASL_SSL")
SASL_PROTOCOLS = ("SASL_PLAINTEXT", "SASL_SSL")
NUL = "\0"
"""PLAIN puts it between user and password."""
PASSWORD_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
PASSWORD_MODULES = ("PlainLoginModule", "ScramLoginModule")

NAMED = (*PASSWORD_MECHANISMS, *TOKEN_MECHANISMS)


class Message(NamedTuple):
    """Log level and text of something that is allowed and looks wrong."""

    level: int
    text: str


class Credentials(NamedTuple):
    """Who logs in by a password; ``token`` if they are a delegation token's id and HMAC (KIP-48)."""

    username: str
    password: Secret
    token: bool = False


class LoginSource(NamedTuple):
    """Gives the credentials of a login."""

    read: Callable[[], Credentials]
    """Raises ConfigError: they cannot be had."""
    deferred: bool
    """Whether ``read`` looks them up each time, and may block."""


def tls_versions(values: Mapping[str, Any]) -> tuple[str, ...]:
    """The TLS versions that may be used, the oldest first; of those that are not safe none beside a safe one.

    Raises:
        ConfigError: a version that is not known, or none that ssl.protocol leaves.
    """
    named = tuple(values["ssl.enabled.protocols"]) or ("TLSv1.2", "TLSv1.3")
    for name in named:
        if name not in TLS_VERSIONS:
            raise ConfigError(f"ssl.enabled.protocols: {name!r} is not allowed, only {', '.join(TLS_VERSIONS)}")
    cap = values["ssl.protocol"]
    if cap not in (*TLS_VERSIONS, "TLS", "SSL"):
        raise ConfigError(f"ssl.protocol is {cap!r}: must be TLS, {', '.join(TLS_VERSIONS)}")
    most = TLS_VERSIONS.index(cap) if cap in TLS_VERSIONS else len(TLS_VERSIONS) - 1
    chosen = sorted({TLS_VERSIONS.index(name) for name in named if TLS_VERSIONS.index(name) <= most})
    if not chosen:
        raise ConfigError(f"ssl.protocol={cap} leaves none of ssl.enabled.protocols={','.join(named)}")
    # Java's list of disabled algorithms leaves the old ones out, too, and a client may be talked down to them.
    chosen = [number for number in chosen if TLS_VERSIONS[number] not in OLD_VERSIONS] or chosen
    return tuple(TLS_VERSIONS[number] for number in chosen)


def tls_rule(values: Mapping[str, Any], explicit: Collection[str]) -> Iterator[Message]:
    """The rules of Java's DefaultSslEngineFactory, and warnings about what weakens TLS."""
    given = sorted(name for name in explicit if name.startswith(("ssl.", "enable.ssl.")))
    if values["security.protocol"] not in TLS_PROTOCOLS:
        if given:
            text = f"{', '.join(given)}: no effect, since security.protocol is {values['security.protocol']}"
            yield Message(logging.WARNING, text)
        return
    if values["ssl.context"] is not None:
        others = [name for name in given if name != "ssl.context"]
        if others:
            raise ConfigError(f"ssl.context is given, so {', '.join(others)} cannot be: set it in the context")
    versions = tls_versions(values)
    if versions[-1] in OLD_VERSIONS:
        yield Message(logging.WARNING, f"{versions[-1]} is not safe (ssl.enabled.protocols)")
    unused = [name for name in values["ssl.enabled.protocols"] if name in OLD_VERSIONS and name not in versions]
    if unused:
        text = (
            f"ssl.enabled.protocols: {', '.join(unused)} is not used, since it is not safe and {versions[-1]} is named"
        )
        yield Message(logging.WARNING, text)
    yield from _only_java(values, explicit)
    _check_stores(values)
    if values["ssl.endpoint.identification.algorithm"].lower() not in ("https", "", "none"):
        raise ConfigError(
            f"ssl.endpoint.identification.algorithm is {values['ssl.endpoint.identification.algorithm']!r}: must be "
            "https, or '' for no check of the host name"
        )
    if not values["enable.ssl.certificate.verification"]:
        text = "enable.ssl.certificate.verification=false: whoever is between here and the broker can read all records"
        yield Message(logging.WARNING, text)
    elif not checks_name(values):
        text = "The broker's host name is not checked (ssl.endpoint.identification.algorithm): any host with a "
        yield Message(logging.WARNING, text + "certificate of a trusted authority is taken for it")


JAVA_ONLY = (
    "ssl.provider",
    "ssl.secure.random.implementation",
    "ssl.keymanager.algorithm",
    "ssl.trustmanager.algorithm",
)
"""They name parts of a Java virtual machine; the login is the same without them."""


def _only_java(values: Mapping[str, Any], explicit: Collection[str]) -> Iterator[Message]:
    given = [f"{name}={shown_value(values[name])}" for name in JAVA_ONLY if name in explicit]
    if given:
        text = f"{', '.join(given)}: no effect outside of a Java virtual machine; TLS is that of OpenSSL"
        yield Message(logging.WARNING, text)


def checks_name(values: Mapping[str, Any]) -> bool:
    """Whether the broker's certificate has to name its host."""
    return str(values["ssl.endpoint.identification.algorithm"]).lower() == "https"


def _check_stores(values: Mapping[str, Any]) -> None:
    both = (
        ("ssl.truststore.certificates", "ssl.truststore.location"),
        ("ssl.truststore.certificates", "ssl.truststore.password"),
        ("ssl.keystore.certificate.chain", "ssl.keystore.location"),
        ("ssl.keystore.key", "ssl.keystore.location"),
    )
    for text, file in both:
        if values[text] is not None and values[file] is not None:
            raise ConfigError(f"{text} and {file} cannot both be given")
    if (values["ssl.keystore.key"] is None) != (values["ssl.keystore.certificate.chain"] is None):
        raise ConfigError("ssl.keystore.key and ssl.keystore.certificate.chain need each other")
    if values["ssl.key.location"] is not None and values["ssl.keystore.location"] is None:
        raise ConfigError("ssl.key.location needs ssl.keystore.location, the file of the certificates")


def credentials(values: Mapping[str, Any]) -> LoginSource | None:
    """Who logs in by a password: of ``sasl.username``, else of ``sasl.jaas.config``; None: neither is given.

    Raises:
        ConfigError: both are given, half of one, or the login module is another mechanism's.
    """
    user, password, jaas = values["sasl.username"], values["sasl.password"], values["sasl.jaas.config"]
    if jaas is None:
        if (user is None) != (password is None):
            raise ConfigError("sasl.username and sasl.password need each other")
        return None if user is None else _login(user if isinstance(user, Secret) else Secret(user), password)
    if user is not None or password is not None:
        raise ConfigError("sasl.jaas.config and sasl.username, sasl.password cannot both be given")
    text = jaas.given() if isinstance(jaas, Placeholder) else None
    if jaas.deferred and (text is None or not text.rstrip().endswith(";")):
        return LoginSource(lambda: _of_jaas(values, jaas.reveal()).read(), True)
    return _of_jaas(values, jaas.reveal() if text is None else text)


def _login(user: Secret, password: Secret, token: bool = False) -> LoginSource:
    # A password that is looked up stays unrevealed until it is sent; the user's name is no secret.
    return LoginSource(
        lambda: Credentials(user.reveal(), Secret(password.reveal()), token), user.deferred or password.deferred
    )


def new_credentials(mechanism: str, username: Any, password: Any) -> Credentials:
    """What ``set_sasl_credentials`` is given.

    Raises:
        TypeError: one of them is no string.
        IllegalArgumentError: a NUL character, which PLAIN cannot send, or a lone surrogate.
    """
    if not isinstance(username, str) or not isinstance(password, str):
        raise TypeError("username and password must be strings")
    if mechanism == "PLAIN" and NUL in username + password:
        raise IllegalArgumentError("SASL PLAIN: neither username nor password may hold a NUL character")
    if not is_utf8(username + password):
        raise IllegalArgumentError(f"the username or the password: {NOT_UTF8}")
    return Credentials(username, Secret(password))


def _of_jaas(values: Mapping[str, Any], text: str) -> LoginSource:
    module = parse_jaas(text)
    mechanism = values["sasl.mechanism"]
    fits = "PlainLoginModule" if mechanism == "PLAIN" else "ScramLoginModule"
    # Each gives a user and a password, which is all that either mechanism asks for, as in Java.
    if module.name not in PASSWORD_MODULES:
        raise ConfigError(f"sasl.jaas.config has {module.name}, but sasl.mechanism={mechanism} needs {fits}")
    missing = [name for name in ("username", "password") if name not in module.options]
    if missing:
        raise ConfigError(f"sasl.jaas.config: {module.name} needs {' and '.join(missing)}")
    # Of the other module, and for PLAIN, Java passes over it.
    token = fits == module.name == "ScramLoginModule" and (module.text("tokenauth") or "false").lower() == "true"
    user, password = (jaas_secret(values, module.options[name]) for name in ("username", "password"))
    return _login(user, password, token)


def placeholder_rule(values: Mapping[str, Any], explicit: Collection[str]) -> Iterator[Message]:
    """A placeholder that nobody resolves is taken for the password, as in Java."""
    for name in explicit:
        value = values[name]
        if type(value) is Secret and looks_like_one(value.reveal()):
            text = f"{name} looks like a placeholder and is used as it is: config.providers does not name its provider"
            yield Message(logging.WARNING, text)


def sasl_rule(values: Mapping[str, Any], explicit: Collection[str]) -> Iterator[Message]:
    """What the mechanisms need."""
    protocol = values["security.protocol"]
    if protocol not in SASL_PROTOCOLS:
        given = sorted(name for name in explicit if name.startswith("sasl."))
        if given:
            yield Message(logging.WARNING, f"{', '.join(given)}: no effect, since security.protocol is {protocol}")
        return
    mechanism = values["sasl.mechanism"]
    if mechanism == "GSSAPI" and values["sasl.username"] is not None and "sasl.mechanism" not in explicit:
        raise ConfigError(
            "sasl.username is given, and sasl.mechanism is GSSAPI by default, as in Java: set sasl.mechanism to one of "
            f"{', '.join(PASSWORD_MECHANISMS)}"
        )
    if mechanism == "GSSAPI" and "sasl.mechanism" not in explicit and not _asks_for_kerberos(explicit):
        raise ConfigError(
            f"security.protocol={protocol} needs a SASL mechanism; sasl.mechanism is GSSAPI by default, as in Java, "
            f"which needs sasl.kerberos.service.name; or set one of {', '.join(NAMED)}"
        )
    if mechanism == "GSSAPI":
        yield from (Message(*found) for found in kerberos_rule(values, explicit))
        return
    if mechanism in TOKEN_MECHANISMS:
        yield from _token_rule(values, protocol)
        return
    yield from _password_rule(values, protocol)


def _password_rule(values: Mapping[str, Any], protocol: str) -> Iterator[Message]:
    mechanism, login = values["sasl.mechanism"], credentials(values)
    if login is None:
        raise ConfigError(f"sasl.mechanism={mechanism} needs sasl.username and sasl.password, or sasl.jaas.config")
    if mechanism != "PLAIN":
        return
    if not login.deferred:
        found = login.read()
        if NUL in found.username or NUL in found.password.reveal():
            raise ConfigError("SASL PLAIN: neither username nor password may hold a NUL character")
    if protocol == "SASL_PLAINTEXT":
        yield Message(logging.WARNING, "SASL PLAIN without TLS sends the password as it is (security.protocol)")


def _asks_for_kerberos(explicit: Collection[str]) -> bool:
    return any(name == "sasl.jaas.config" or name.startswith("sasl.kerberos.") for name in explicit)


def _token_rule(values: Mapping[str, Any], protocol: str) -> Iterator[Message]:
    for name in ("sasl.username", "sasl.password"):
        if values[name] is not None:
            raise ConfigError(f"{name} has no effect with sasl.mechanism={values['sasl.mechanism']}: leave it out")
    source = token_source(values)
    if protocol == "SASL_PLAINTEXT":
        yield Message(logging.WARNING, "SASL OAUTHBEARER without TLS sends the token as it is (security.protocol)")
    if source.kind == "unsecured":
        yield Message(logging.WARNING, "unsecuredLogin... in sasl.jaas.config: anybody can make such a token")
    if values["sasl.oauthbearer.method"] == "oidc" and values["sasl.oauthbearer.token.endpoint.url"] is None:
        raise ConfigError("sasl.oauthbearer.method=oidc needs sasl.oauthbearer.token.endpoint.url")
