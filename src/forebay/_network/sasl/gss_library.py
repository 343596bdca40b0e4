"""The system's GSS-API library (MIT Kerberos) by ctypes: the part of RFC 2744 that a client's login needs.

``gssapi`` and ``krb5`` of PyPI have no wheels for Linux, and the runtime library is on nearly every machine.  Calls may
ask a KDC, and block for that time.  The module is imported only where ``sasl.mechanism`` is GSSAPI.
"""

from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint32, c_void_p
from typing import Any, NamedTuple

from forebay.errors import ConfigError

NAMES = ("libgssapi_krb5.so.2", "libgssapi_krb5.2.dylib")
MUTUAL, INTEGRITY = 2, 32
"""Flags of a context: the service proves who it is, too; tokens can be protected."""
_CONTINUE_NEEDED, _ERRORS = 1, 0xFFFF0000
_INITIATE = 1
_OF_GSS, _OF_MECHANISM = 1, 2
_MOST_STATUS_LINES = 8
_NOTHING = ("Success", "Unknown error")


class GssError(Exception):
    """A call failed; the text is the library's."""

    def __init__(self, major: int, minor: int, text: str) -> None:
        super().__init__(text)
        self.major = major
        self.minor = minor
        """Kerberos' code, signed as in krb5.h."""


class CredentialStore(NamedTuple):
    """Where credentials come from; None: the library's default."""

    principal: str | None
    keytab: str | None
    cache: str | None


class _Buffer(ctypes.Structure):
    _fields_ = (("length", c_size_t), ("value", c_void_p))


class _Oid(ctypes.Structure):
    _fields_ = (("length", c_uint32), ("elements", c_char_p))


class _OidSet(ctypes.Structure):
    _fields_ = (("count", c_size_t), ("elements", POINTER(_Oid)))


class _KeyValue(ctypes.Structure):
    _fields_ = (("key", c_char_p), ("value", c_char_p))


class _KeyValueSet(ctypes.Structure):
    _fields_ = (("count", c_uint32), ("elements", POINTER(_KeyValue)))


def _oid(text: str) -> _Oid:
    elements = bytes.fromhex(text)
    return _Oid(len(elements), elements)


_KERBEROS = _oid("2a864886f712010202")
_SERVICE_NAME = _oid("2a864886f71201020104")
_PRINCIPAL_NAME = _oid("2a864886f71201020201")


class GssLibrary:
    """The loaded library; any thread.

    Raises:
        ConfigError: this machine has none.
    """

    def __init__(self) -> None:
        self._calls = _load()

    def context(self, service: str, store: CredentialStore) -> GssContext:
        """Begins a login at ``service``, as ``kafka@host``; may ask the KDC for a first ticket.

        Raises:
            GssError: no credentials, or no name.
        """
        return GssContext(self, service, store)

    def call(self, name: str, *arguments: Any) -> int:
        """Calls a function whose first parameter is the minor status; its major status.

        Raises:
            GssError: the major status is an error.
        """
        minor = c_uint32()
        major = int(getattr(self._calls, name)(byref(minor), *arguments))
        if major & _ERRORS:
            raise GssError(major, c_int(minor.value).value, self._text(major, minor.value))
        return major

    def take(self, buffer: _Buffer) -> bytes:
        """The bytes of a buffer that the library gave, which is released."""
        data = ctypes.string_at(buffer.value, buffer.length) if buffer.value else b""
        self.call("gss_release_buffer", byref(buffer))
        return data

    def _text(self, major: int, minor: int) -> str:
        # The message of Kerberos, if there is one, is more exact than that of GSS-API.
        lines = [line for line in self._lines(minor, _OF_MECHANISM) if line not in _NOTHING] if minor else []
        return "; ".join(lines or self._lines(major, _OF_GSS)) or f"GSS-API error {major:#x}, {minor}"

    def _lines(self, status: int, kind: int) -> list[str]:
        lines: list[str] = []
        more, minor = c_uint32(), c_uint32()
        while len(lines) < _MOST_STATUS_LINES:
            buffer = _Buffer()
            failed = self._calls.gss_display_status(
                byref(minor), status, kind, byref(_KERBEROS), byref(more), byref(buffer)
            )
            if failed:
                break
            lines.append(self.take(buffer).decode("utf-8", "replace"))
            if not more.value:
                break
        return lines


class GssContext:
    """One login; used by one thread at a time."""

    def __init__(self, library: GssLibrary, service: str, store: CredentialStore) -> None:
        self.complete = False
        """No further token is needed."""
        self.mutual = False
        """The service has proved who it is."""
        self._library = library
        self._handle, self._name, self._credentials = c_void_p(), c_void_p(), c_void_p()
        self._name = self._import(service, _SERVICE_NAME)
        self._acquire(store)

    def step(self, token: bytes) -> bytes:
        """Takes the peer's token (empty at first) and gives the next one of ours; may ask the KDC.

        Raises:
            GssError: no ticket, or the peer is not who it says it is.
        """
        given, ours, flags = _given(token), _Buffer(), c_uint32()
        try:
            major = self._library.call(
                "gss_init_sec_context",
                self._credentials,
                byref(self._handle),
                self._name,
                byref(_KERBEROS),
                MUTUAL | INTEGRITY,
                0,
                None,
                byref(given),
                None,
                byref(ours),
                byref(flags),
                None,
            )
        finally:
            answer = self._library.take(ours)
        self.complete = not major & _CONTINUE_NEEDED
        self.mutual = bool(flags.value & MUTUAL)
        return answer

    def unwrap(self, token: bytes) -> bytes:
        """The protected text of a peer's token.

        Raises:
            GssError: it is not the peer's, or was changed.
        """
        given, plain = _given(token), _Buffer()
        self._library.call("gss_unwrap", self._handle, byref(given), byref(plain), None, None)
        return self._library.take(plain)

    def wrap(self, text: bytes) -> bytes:
        """Protects a text against changes; it is not encrypted."""
        given, token = _given(text), _Buffer()
        self._library.call("gss_wrap", self._handle, 0, 0, byref(given), None, byref(token))
        return self._library.take(token)

    def __del__(self) -> None:
        # Not sooner, because the helper thread may be in a call when the login is given up.
        for name, handle in (
            # Not there if a signal handler raised in __init__.
            ("gss_delete_sec_context", getattr(self, "_handle", None)),
            ("gss_release_cred", getattr(self, "_credentials", None)),
            ("gss_release_name", getattr(self, "_name", None)),
        ):
            if handle:
                more = (None,) if name == "gss_delete_sec_context" else ()
                self._library.call(name, byref(handle), *more)

    def _import(self, text: str, kind: _Oid) -> c_void_p:
        name, given = c_void_p(), _given(text.encode())
        self._library.call("gss_import_name", byref(given), byref(kind), byref(name))
        return name

    def _acquire(self, store: CredentialStore) -> None:
        entries = [(b"client_keytab", store.keytab), (b"ccache", store.cache)]
        given = [_KeyValue(key, os.fsencode(value)) for key, value in entries if value is not None]
        pairs = _KeyValueSet(len(given), (_KeyValue * len(given))(*given))
        kinds = _OidSet(1, ctypes.pointer(_KERBEROS))
        principal = c_void_p() if store.principal is None else self._import(store.principal, _PRINCIPAL_NAME)
        try:
            self._library.call(
                "gss_acquire_cred_from",
                principal,
                0xFFFFFFFF,
                byref(kinds),
                _INITIATE,
                byref(pairs),
                byref(self._credentials),
                None,
                None,
            )
        finally:
            if principal:
                self._library.call("gss_release_name", byref(principal))


def _given(data: bytes) -> _Buffer:
    return _Buffer(len(data), ctypes.cast(c_char_p(data), c_void_p))


_RESULT, _MINOR, _IN, _HANDLE = c_uint32, POINTER(c_uint32), c_void_p, c_void_p
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "gss_import_name": (_IN, _IN, _IN),
    "gss_acquire_cred_from": (_HANDLE, c_uint32, _IN, c_int, _IN, _IN, _IN, _IN),
    "gss_init_sec_context": (_HANDLE, _IN, _HANDLE, _IN, c_uint32, c_uint32, _IN, _IN, _IN, _IN, _IN, _IN),
    "gss_unwrap": (_HANDLE, _IN, _IN, _IN, _IN),
    "gss_wrap": (_HANDLE, c_int, c_uint32, _IN, _IN, _IN),
    "gss_display_status": (c_uint32, c_int, _IN, _IN, _IN),
    "gss_release_buffer": (_IN,),
    "gss_release_name": (_IN,),
    "gss_release_cred": (_IN,),
    "gss_delete_sec_context": (_IN, _IN),
}
"""The parameters of each function behind the minor status."""


def _load() -> Any:
    for name in NAMES:
        try:
            library = ctypes.CDLL(name)
            for function, parameters in _SIGNATURES.items():
                call = getattr(library, function)
                call.restype, call.argtypes = _RESULT, (_MINOR, *parameters)
        except (OSError, AttributeError):
            continue
        return library
    raise ConfigError(
        "sasl.mechanism=GSSAPI needs MIT Kerberos' library, which is not on this machine: install libgssapi-krb5-2 "
        "(Debian, Ubuntu), krb5-libs (Red Hat, Alpine) or krb5 (Homebrew)"
    )
