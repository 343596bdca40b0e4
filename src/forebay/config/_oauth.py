"""Where the tokens of OAUTHBEARER come from: the one source that the options name, and what is refused together."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from forebay.config._aliases import OauthCb
from forebay.config._jaas import LoginModule, parse_jaas
from forebay.config._placeholders import Placeholder, providers_of
from forebay.config._secret import Secret
from forebay.errors import ConfigError
from forebay.model._wire import shown_url

TOKEN_MECHANISMS = ("OAUTHBEARER", "AWS_MSK_IAM")
_PREFIX = "sasl.oauthbearer"
_URL = f"{_PREFIX}.token.endpoint.url"
_ID, _SECRET = (f"{_PREFIX}.client.credentials.client.{name}" for name in ("id", "secret"))
_IAM_OPTIONS = frozenset({"awsProfileName", "awsRoleArn", "awsRoleSessionName"})
WAYS = f"{_PREFIX}.token.provider (a callable), {_URL}, or sasl.mechanism=AWS_MSK_IAM"


class TokenSource(NamedTuple):
    """Where tokens come from."""

    kind: str
    """provider, file, secret, assertion, jwt-bearer, unsecured or aws."""
    option: str
    """Which option says so, for messages."""
    provider: Callable[[], Any] | None = None
    jaas: Mapping[str, Secret] = {}
    """The options of the login module, whose values may hold placeholders."""

    def __repr__(self) -> str:
        return f"<TokenSource {self.kind} of {self.option}>"

    def text(self, name: str) -> str | None:
        """The value of one of the login module's options that is no secret."""
        return None if name not in self.jaas else self.jaas[name].reveal()


def token_source(values: Mapping[str, Any]) -> TokenSource:
    """The one source.

    Raises:
        ConfigError: there is none, or more than one, or it lacks something.
    """
    module = oauth_module(values)
    jaas = {} if module is None else module.options
    found: list[TokenSource | str] = [
        *_users(values),
        *_aws(values, module),
        *(["unsecured"] if any(name.startswith("unsecuredLogin") for name in jaas) else []),
        *(["endpoint"] if values[_URL] is not None else []),
    ]
    if not found:
        raise ConfigError(f"sasl.mechanism={values['sasl.mechanism']} needs tokens: set {WAYS}")
    if len(found) > 1:
        names = " and ".join(_NAMES[one] if isinstance(one, str) else one.option for one in found)
        raise ConfigError(f"{names} cannot both be given: each is a source of tokens")
    one = found[0]
    if not isinstance(one, str):
        return one._replace(jaas=jaas)
    if one == "unsecured":
        return TokenSource("unsecured", "sasl.jaas.config", jaas=jaas)
    return _endpoint(values, jaas)


_NAMES = {"unsecured": "unsecuredLogin... in sasl.jaas.config", "endpoint": _URL}


def oauth_module(values: Mapping[str, Any]) -> LoginModule | None:
    """The login module of ``sasl.jaas.config``, if it is given."""
    jaas = values["sasl.jaas.config"]
    if jaas is None:
        return None
    text = jaas.given() if isinstance(jaas, Placeholder) else None
    if jaas.deferred and (text is None or not text.rstrip().endswith(";")):
        raise ConfigError(
            "sasl.jaas.config as a whole cannot be a placeholder or a callable with this mechanism; write the "
            'placeholder into it: clientSecret="${env:...}"'
        )
    module = parse_jaas(jaas.reveal() if text is None else text)
    if module.name not in ("OAuthBearerLoginModule", "IAMLoginModule"):
        mechanism = values["sasl.mechanism"]
        raise ConfigError(
            f"sasl.jaas.config has {module.name}, but sasl.mechanism={mechanism} needs OAuthBearerLoginModule"
        )
    return module


def jaas_secret(values: Mapping[str, Any], value: Secret) -> Secret:
    """A value of the login module, which may hold placeholders."""
    providers = providers_of(values)
    return Placeholder(value.reveal(), providers, "sasl.jaas.config") if providers.has(value.reveal()) else value


def _users(values: Mapping[str, Any]) -> list[TokenSource]:
    """Python objects that give tokens."""
    names = (f"{_PREFIX}.token.provider", "sasl.login.callback.handler.class", f"{_PREFIX}.jwt.retriever.class")
    return [
        TokenSource("provider", name, provider_of(values[name], name, values[f"{_PREFIX}.config"]))
        for name in names
        if values[name] is not None and not isinstance(values[name], str)
    ]


def provider_of(given: Any, name: str, config: str | None) -> Callable[[], Any]:
    """What gives tokens when it is called without arguments.

    Takes a callable, kafka-python's AbstractTokenProvider (``token``, ``extensions``), Java's shape (``retrieve``), and
    a class of these.

    Raises:
        ConfigError: it is nothing of that, or a coroutine function.
    """
    if isinstance(given, OauthCb):
        callback = given.callback
        _check_function(callback, "oauth_cb")
        return lambda: callback(config or "")
    if isinstance(given, type):
        try:
            given = given()
        except Exception as error:
            raise ConfigError(f"{name}: {given.__name__}() raised {type(error).__name__}: {error}") from error
    for method in ("token", "retrieve"):
        ask = getattr(given, method, None)
        if callable(ask):
            _check_function(ask, name)
            return _with_extensions(ask, getattr(given, "extensions", None))
    _check_function(given, name)
    return given  # type: ignore[no-any-return]


def _with_extensions(ask: Callable[[], Any], extensions: Callable[[], Any] | None) -> Callable[[], Any]:
    def both() -> Any:
        token = ask()
        more = extensions() if callable(extensions) else None
        return (token, None, None, more) if more and isinstance(token, str) else token

    return both


def _check_function(given: Any, name: str) -> None:
    if not callable(given):
        raise ConfigError(f"{name} must be callable or have token(), got {type(given).__name__}")
    import inspect  # most have no provider

    if inspect.iscoroutinefunction(given) or inspect.iscoroutinefunction(getattr(given, "__call__", None)):  # noqa: B004
        raise ConfigError(
            f"{name} is a coroutine function; it is called by a thread without an event loop, so it must be a function "
            "(it may block: no record waits for it)"
        )


def _aws(values: Mapping[str, Any], module: LoginModule | None) -> list[TokenSource]:
    iam = module is not None and module.name == "IAMLoginModule"
    if not (values["sasl.mechanism"] == "AWS_MSK_IAM" or iam or values["sasl.client.callback.handler.class"] == "aws"):
        return []
    unknown = sorted(set(module.options) - _IAM_OPTIONS) if iam and module is not None else []
    if unknown:
        allowed, shown = ", ".join(sorted(_IAM_OPTIONS)), ", ".join(map(_jaas_name, unknown))
        raise ConfigError(f"sasl.jaas.config: {shown} of IAMLoginModule cannot be used, only {allowed}")
    return [TokenSource("aws", "sasl.mechanism=AWS_MSK_IAM")]


def _jaas_name(name: str) -> str:
    # Any other word may be a part of a password whose quotes are wrong.
    return name if re.fullmatch("aws[A-Za-z]{1,30}", name) else f"an option of {len(name)} characters"


def _endpoint(values: Mapping[str, Any], jaas: Mapping[str, Secret]) -> TokenSource:
    url, retriever = values[_URL], values[f"{_PREFIX}.jwt.retriever.class"] or "default"
    is_file = url.startswith("file:")
    if not is_file and "@" in url.partition("?")[0]:
        raise ConfigError(f"{_URL}: no user or password may be in it; give {_ID} and {_SECRET}")
    if is_file and retriever in ("default", "file"):
        return TokenSource("file", _URL, jaas=jaas)
    if is_file or retriever == "file":
        raise ConfigError(
            f"{_URL}={shown_url(url)} does not fit {_PREFIX}.jwt.retriever.class: FileJwtRetriever reads file: URLs"
        )
    signs = values[f"{_PREFIX}.assertion.file"] is not None or values[f"{_PREFIX}.assertion.claim.iss"] is not None
    if retriever == "jwt-bearer" or signs:
        _check_assertion(values)
        return TokenSource("jwt-bearer" if retriever == "jwt-bearer" else "assertion", _URL, jaas=jaas)
    for option, name in ((_ID, "clientId"), (_SECRET, "clientSecret")):
        if values[option] is None and (name not in jaas or not jaas[name].reveal()):
            raise ConfigError(f"{_URL} needs {option}, or {name} in sasl.jaas.config")
    return TokenSource("secret", _URL, jaas=jaas)


def _check_assertion(values: Mapping[str, Any]) -> None:
    file, key = f"{_PREFIX}.assertion.file", f"{_PREFIX}.assertion.private.key.file"
    if values[file] is None and values[key] is None:
        raise ConfigError(f"{_URL}: an assertion needs {file}, or {key} to sign one")
