"""From the options ``ssl.*`` to an ``ssl.SSLContext``, which is made anew when a file that it was made of has changed.

Each new connection looks at the files' times and sizes, so a certificate that was replaced on disk is used from the
next connection on, without a timer and without a restart.  Contexts are kept by options and files: a second producer
of the process with the same ones does not read the system's authorities again.
"""

from __future__ import annotations

import logging
import os
import re
import ssl
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from forebay._network import pem, stores, tls_ciphers
from forebay._network.tls import TlsFilter
from forebay._network.tls_words import Own
from forebay._runtime.allowed import path_refusal
from forebay._runtime.files import NoTextError, open_to_others, read_small, without_mark
from forebay.errors import ConfigError

logger = logging.getLogger("forebay.network")

VERSIONS = {
    "TLSv1": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
KNOWN_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/private/etc/ssl/cert.pem",
    "/opt/homebrew/etc/openssl@3/cert.pem",
    "/usr/local/etc/openssl/cert.pem",
)
"""Where the systems keep their authorities, for a Python whose OpenSSL looks elsewhere (python.org's on macOS)."""
EXPIRY_WARNING_S = 7 * 86400
MOST_KEPT = 8
MAX_STORE = 64 * 1024 * 1024
"""Bytes of a file; the revocation list of a large authority has many megabytes."""
SYSTEM_STORE = "the system's certificate authorities (set ssl.truststore.location for another store)"

_kept: dict[Any, tuple[ssl.SSLContext, str]] = {}


class TlsSettings(NamedTuple):
    """The options that make a context.  Passwords and keys are ``Secret``, so this prints none of them.

    A path may be a ``Placeholder``; ``located`` gives the settings with the paths of now.
    """

    versions: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")
    ciphers: tuple[str, ...] = ()
    check_name: bool = True
    verify: bool = True
    truststore: Any = None
    truststore_password: Any = None
    certificates: Any = None
    """Trusted certificates as PEM text (``ssl.truststore.certificates``)."""
    crl: Any = None
    keystore: Any = None
    keystore_password: Any = None
    key_password: Any = None
    key_file: Any = None
    """The key apart from its certificates (librdkafka's ``ssl.key.location``)."""
    alias: str | None = None
    """Of the key in ``keystore`` (``ssl.keystore.alias``)."""
    key: Any = None
    chain: Any = None
    """Key and certificates as PEM text (``ssl.keystore.key``, ``ssl.keystore.certificate.chain``)."""

    def located(self) -> TlsSettings:
        """The settings with paths in place of placeholders.

        Raises:
            ConfigError: a placeholder has no value now.
        """
        names = ("truststore", "crl", "keystore", "key_file")
        paths = {name: getattr(self, name) for name in names}
        found = {name: path.reveal() for name, path in paths.items() if hasattr(path, "reveal")}
        return self._replace(**found) if found else self

    def files(self) -> tuple[str, ...]:
        """The files and folders that are read; of settings that are ``located``."""
        return tuple(path for path in (self.truststore, self.crl, self.keystore, self.key_file) if path)


class TlsContexts:
    """The filters of one producer's connections; sender's thread, after construction.

    Args:
        settings: of the options, unless ``given`` is there.
        wall: Unix ms.
        given: the user's own context (``ssl.context``), or what makes one (``ssl.engine.factory.class``).

    Raises:
        ConfigError: a file cannot be read, or does not hold what its option says; names option and path.
    """

    def __init__(
        self,
        settings: TlsSettings,
        wall: Callable[[], float],
        given: ssl.SSLContext | Callable[[], ssl.SSLContext] | None = None,
    ) -> None:
        self._settings = settings
        self._given = given
        self._wall = wall
        self._warned: set[str] = set()
        self._unread: tuple[Any, ...] = ()
        self._seen = _stats(settings)
        self._context, self._store = self._make()
        self._check_own()
        warn_of_open_files({"ssl.keystore.location": settings.keystore, "ssl.key.location": settings.key_file})

    def __repr__(self) -> str:
        return f"<TlsContexts judged by {self._store}>"

    def filter(self, name: str) -> TlsFilter:
        """The filter of a new connection to the host ``name``."""
        self._reload()
        return TlsFilter(self._context, name, self._store, self._note_expiry)

    def _reload(self) -> None:
        seen = _stats(self._settings)
        if seen in (self._seen, self._unread):
            return
        try:
            self._context, self._store = self._make()
        except (ConfigError, OSError) as error:
            # Half-written, perhaps: the next change is tried.
            self._unread = seen
            logger.warning("TLS: the files of ssl.* have changed and cannot be used, the old ones stay: %s", error)
            return
        self._seen = seen
        self._check_own()
        logger.info("TLS: the files of ssl.* have changed and are used for new connections")

    def _make(self) -> tuple[ssl.SSLContext, str]:
        if self._given is not None:
            return _context_of(self._given), "the given ssl.context"
        key = (self._settings, _stats(self._settings))
        found = _kept.get(key)
        if found is None:
            found = make_context(self._settings)
            while len(_kept) >= MOST_KEPT:
                _kept.pop(next(iter(_kept)), None)
            _kept[key] = found
        return found

    def _check_own(self) -> None:
        own: Own | None = getattr(self._context, "own", None)
        if own is not None and own.ends_s is not None and own.ends_s <= self._wall() / 1000:
            logger.warning("TLS: the client certificate of %s has expired: brokers will refuse it", own.where)

    def _note_expiry(self, name: str, end_s: float) -> None:
        left = end_s - self._wall() / 1000
        if left < EXPIRY_WARNING_S and name not in self._warned:
            self._warned.add(name)
            logger.warning("TLS: the certificate of %s expires in %.1f days", name, left / 86400)


def warn_of_open_files(paths: Mapping[str, Any]) -> None:
    """Warns of files with keys that every user of this machine can read; by the option that names each."""
    for option, path in paths.items():
        if isinstance(path, str) and open_to_others(path):
            logger.warning("%s=%s can be read by every user of this machine: chmod o-r", option, path)


def _context_of(given: Any) -> ssl.SSLContext:
    made = given if isinstance(given, ssl.SSLContext) else given()
    if not isinstance(made, ssl.SSLContext):
        raise ConfigError(f"ssl.engine.factory.class must give an ssl.SSLContext, it gave {type(made).__name__}")
    return made


def _stats(settings: TlsSettings) -> tuple[Any, ...]:
    found: list[Any] = []
    try:
        settings = settings.located()
    except ConfigError:
        return (None,)
    for path in settings.files():
        try:
            stat = os.stat(path)
        except OSError:
            found.append(path)
        else:
            found.append((path, stat.st_mtime_ns, stat.st_size, stat.st_ino))
    secret: Any
    for secret in settings:
        # A password or key that is looked up may be another one now.
        if getattr(secret, "deferred", False):
            try:
                found.append(hash(secret.reveal()))
            except ConfigError:
                found.append(None)
    return tuple(found)


class _Context(ssl.SSLContext):
    """A context that knows of the client's certificate; for the words of a refusal."""

    own: Own | None = None


def make_context(settings: TlsSettings) -> tuple[ssl.SSLContext, str]:
    """A context, and in words what it judges certificates by.

    Raises:
        ConfigError: as ``TlsContexts``.
    """
    settings = settings.located()
    # Not create_default_context: from Python 3.13 on it asks of certificates what many companies' own lack.
    context = _Context(ssl.PROTOCOL_TLS_CLIENT)
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # Java trusts each certificate of its store, too
    context.check_hostname = settings.check_name and settings.verify
    context.verify_mode = ssl.CERT_REQUIRED if settings.verify else ssl.CERT_NONE
    chosen = [VERSIONS[name] for name in settings.versions]
    context.minimum_version, context.maximum_version = min(chosen), max(chosen)
    if settings.ciphers:
        tls_ciphers.apply(context, settings.ciphers)
    store = _trust(context, settings)
    if settings.crl:
        lists = _chosen(
            "ssl.crl.location", settings.crl, _read("ssl.crl.location", settings.crl), pem.LISTS, "X509 CRL"
        )
        with _as_file(lists) as file:
            _load("ssl.crl.location", settings.crl, lambda: context.load_verify_locations(file))
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    _identify(context, settings)
    return context, store


# -- whom we trust ---------------------------------------------------------------------------------------------


def _trust(context: ssl.SSLContext, settings: TlsSettings) -> str:
    if settings.certificates is not None:
        option, text = "ssl.truststore.certificates", settings.certificates.reveal()
        found = _chosen(option, None, text.encode(), pem.CERTIFICATES, "certificate")
        _load(option, None, lambda: context.load_verify_locations(cadata=found.decode("ascii")))
        return option
    option, path = "ssl.truststore.location", settings.truststore
    if path is None:
        return _trust_system(context)
    refusal = path_refusal(path)
    if refusal is not None:
        raise ConfigError(f"{_where(option, path)}: {refusal}")
    if os.path.isdir(path):
        # OpenSSL takes a folder that it cannot read, or that has no name it looks for, and then trusts nobody.
        names: list[str] = []
        _load(option, path, lambda: names.extend(os.listdir(path)))
        if not any(_HASHED.fullmatch(name) for name in names):
            raise ConfigError(
                f"{option}={path}: is a folder without names like 9d66eef0.0, by which OpenSSL finds certificates; "
                "`openssl rehash` makes them, or name a file"
            )
        _load(option, path, lambda: context.load_verify_locations(capath=path))
        return f"{option}={path}"
    data = _read(option, path)
    if pem.is_pem(data):
        if settings.truststore_password is not None:
            logger.warning("ssl.truststore.password has no effect: %s is PEM", path)
        found = _chosen(option, path, data, pem.CERTIFICATES, "certificate")
    else:
        store = _open_store("ssl.truststore", path, data, settings.truststore_password, for_trust=True)
        trusted = store.certificates + tuple(der for entry in store.keys for der in entry.chain)
        if not trusted:
            raise ConfigError(f"{option}={path}: holds no certificate")
        found = "".join(pem.wrapped(der, "CERTIFICATE") for der in trusted).encode()
    _load(option, path, lambda: context.load_verify_locations(cadata=found.decode("ascii")))
    return f"{option}={path}"


_HASHED = re.compile(r"[0-9a-f]{8}\.\d+")


def _chosen(option: str, path: str | None, data: bytes, labels: tuple[str, ...], what: str) -> bytes:
    try:
        return pem.chosen(data, labels, what)
    except pem.StoreError as error:
        raise ConfigError(f"{_where(option, path)}: {error.message}") from None


def _trust_system(context: ssl.SSLContext) -> str:
    context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    if context.cert_store_stats()["x509_ca"] or os.path.isdir(ssl.get_default_verify_paths().capath or ""):
        return SYSTEM_STORE
    for path in KNOWN_BUNDLES:
        if os.path.isfile(path):
            context.load_verify_locations(path)
            return f"{path} ({SYSTEM_STORE})"
    try:
        import certifi  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        logger.warning("TLS: this machine has no certificate authorities; set ssl.truststore.location")
        return "no certificate authority at all (set ssl.truststore.location)"
    context.load_verify_locations(certifi.where())
    return "the authorities of the package certifi (set ssl.truststore.location for another store)"


# -- who we are ------------------------------------------------------------------------------------------------


def _identify(context: _Context, settings: TlsSettings) -> None:
    if settings.chain is not None:
        chain = "ssl.keystore.certificate.chain"
        data = _chosen(chain, None, settings.chain.reveal().encode(), pem.CERTIFICATES, "certificate")
        if settings.key is not None:
            data += _chosen("ssl.keystore.key", None, settings.key.reveal().encode(), pem.KEYS, "private key")
        _load_chain(context, chain, None, data, settings.key_password)
    elif settings.keystore is not None:
        _identify_by_store(context, settings, settings.keystore)


def _identify_by_store(context: _Context, settings: TlsSettings, path: str) -> None:
    option, data = "ssl.keystore.location", _read("ssl.keystore.location", path)
    if pem.is_pem(data):
        if settings.key_file is not None:
            key = _read("ssl.key.location", settings.key_file)
            text = _chosen("ssl.key.location", settings.key_file, key, pem.KEYS, "private key")
        else:
            text = _chosen(option, path, data, pem.KEYS, "private key (ssl.key.location may name its file)")
        text += _chosen(option, path, data, pem.CERTIFICATES, "certificate")
        # Java takes the key's password alone for PEM; who gave only the store's meant the same.
        password = settings.key_password if settings.key_password is not None else settings.keystore_password
        _load_chain(context, option, path, text, password)
        return
    store = _open_store(
        "ssl.keystore", path, data, settings.keystore_password, key_password=settings.key_password, alias=settings.alias
    )
    if not store.keys or not store.keys[0].chain:
        what = "certificate of its key" if store.keys else "private key"
        raise ConfigError(f"{option}={path}: has no {what}, only {len(store.certificates)} certificate(s) of others")
    entry = store.keys[0]
    parts = (pem.wrapped(entry.key, "PRIVATE KEY"), *(pem.wrapped(der, "CERTIFICATE") for der in entry.chain))
    _load_chain(context, option, path, "".join(parts).encode(), None)


def _load_chain(context: _Context, option: str, path: str | None, data: bytes, password: Any) -> None:
    def ask() -> str:
        # Without this OpenSSL would ask on the terminal.
        if password is None:
            raise ConfigError(f"{_where(option, path)}: the private key is encrypted; set ssl.key.password")
        return str(password.reveal())

    with _as_file(data) as file:
        _load(option, path, lambda: context.load_cert_chain(file, password=ask))
    first = next(block for block in pem.blocks(data) if block.label in pem.CERTIFICATES)
    context.own = Own(_where(option, path), pem.end_of(first.der()))


@contextmanager
def _as_file(data: bytes) -> Iterator[str]:
    """A path under which ``data`` can be read, since OpenSSL takes keys from files only; nothing goes to a disk."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("forebay-key", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, data)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    with tempfile.TemporaryDirectory(prefix="forebay-") as folder:  # of this user alone
        path = os.path.join(folder, "key.pem")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
        yield path


# -- reading, with words ---------------------------------------------------------------------------------------

_LOADING = {
    "KEY_VALUES_MISMATCH": "the private key is not the certificate's",
    "NO_START_LINE": "there is no certificate, or no key, in it",
    "BAD_DECRYPT": "the password (ssl.key.password) is another one",
    "BAD_PASSWORD_READ": "the password (ssl.key.password) is another one",
    "NO_CERTIFICATE_OR_CRL_FOUND": "there is no certificate in it",
}


def _load(option: str, path: str | None, load: Callable[[], object]) -> None:
    try:
        load()
    except ConfigError:
        raise
    except ssl.SSLError as error:
        words = _LOADING.get(error.reason or "") or (
            "the key cannot be read: its password (ssl.key.password) may be another one"
            if error.reason == "PEM_LIB" or "PEM lib" in str(error)
            else "what it holds cannot be used"
        )
        raise ConfigError(f"{_where(option, path)}: {words} (OpenSSL: {error.reason or error})") from error
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or error
        raise ConfigError(f"{_where(option, path)}: what it holds cannot be used ({said})") from error


def _read(option: str, path: str) -> bytes:
    try:
        # No other form of a store begins with a mark.  OpenSSL would pass over what follows one.
        data = without_mark(read_small(path, MAX_STORE))
    except OSError as error:
        raise ConfigError(f"{_where(option, path)}: {error.strerror or error}") from error
    except NoTextError as error:
        raise ConfigError(f"{_where(option, path)}: {error}") from None
    if not data.strip():
        raise ConfigError(f"{_where(option, path)}: is empty")
    return data


def _open_store(option: str, path: str, data: bytes, password: Any, **more: Any) -> stores.Store:
    given = more.pop("key_password", None)
    try:
        return stores.read_store(data, _revealed(password), _revealed(given), **more)
    except pem.StoreError as error:
        hint = "" if "password" not in error.message else f"; see {option}.password"
        raise ConfigError(f"{option}.location={path}: {error.message}{hint}") from None


def _where(option: str, path: str | None) -> str:
    return option if path is None else f"{option}={path}"


def _revealed(secret: Any) -> str | None:
    return None if secret is None else str(secret.reveal())
