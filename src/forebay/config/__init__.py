"""A producer's configuration: one declared table, read once, checked whole, then immutable.

Keys are the Java client's; ``linger.ms`` may be written ``linger_ms``.  A key that is no option, a value out of
range, options at odds with each other and options whose machinery this version lacks raise ``ConfigError``.
"""

from __future__ import annotations

import logging
from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from forebay.config._aliases import ALIASES
from forebay.config._bootstrap import HostPort, parse_bootstrap
from forebay.config._door import TABLE as _TABLE
from forebay.config._door import door, kafka_name
from forebay.config._hints import lack, unknown
from forebay.config._option import Feature, Importance, Option, Type, load
from forebay.config._placeholders import Placeholder, Providers, providers_of
from forebay.config._rules import RULES, Note, client_id_of
from forebay.config._secret import HIDDEN, Secret, described, shown_value
from forebay.config._sources import FromSources
from forebay.errors import ConfigError

if TYPE_CHECKING:
    from typing import Unpack

    from forebay.config._typed import ProducerOptions

AVAILABLE: frozenset[Feature] = frozenset(
    {Feature.TRANSACTIONS, Feature.TLS, Feature.SASL, Feature.GSSAPI, Feature.OAUTHBEARER}
)
"""The features this version has, of those that options are waiting for."""

_log = logging.getLogger("forebay.config")
# A process may make many configurations.
_DEFAULTS: Mapping[str, Any] = MappingProxyType({name: option.default for name, option in _TABLE.items()})
_OF_PROVIDERS = tuple(option for option in _TABLE.values() if option.name.startswith("config.providers"))


def table() -> tuple[Option, ...]:
    """Every option, in the order of the documentation."""
    return tuple(_TABLE.values())


class ProducerConfig(FromSources, Mapping[str, Any]):
    """An immutable mapping from every option's Kafka name to its value.

    Args:
        values: options by name, in either spelling; values typed or as text.  None counts as not given.
        features: for tests and later versions, the machinery there is.
        options: more options, as keywords.

    Raises:
        ConfigError: see the module.  Passwords are in no message.
    """

    __slots__ = ("_bootstrap", "_features", "_notes", "_originals", "_values")

    _originals: Mapping[str, Any]
    _values: Mapping[str, Any]
    _notes: tuple[Note, ...]
    _features: frozenset[Feature]
    _bootstrap: tuple[HostPort, ...]

    @door()
    def __init__(
        self,
        values: Mapping[str, Any] | None = None,
        /,
        *,
        features: frozenset[Feature] = AVAILABLE,
        **options: Unpack[ProducerOptions],
    ) -> None:
        given = values.originals() if isinstance(values, ProducerConfig) else values
        self._fill(_collect(given or {}, options, features), features)
        for note in self._notes:
            _log.log(note.level, note.text)

    def _fill(self, given: Mapping[str, Any], features: frozenset[Feature]) -> None:
        providers = providers_of(
            {
                option.name: option.parse(given[option.name]) if option.name in given else option.default
                for option in _OF_PROVIDERS
            }
        )
        originals = {name: _held(_TABLE[name], value, providers) for name, value in given.items()}
        parsed: dict[str, Any] = dict(_DEFAULTS)
        parsed.update((name, _parsed(_TABLE[name], value)) for name, value in originals.items())
        parsed["interceptor.classes"] = tuple(
            load(_TABLE["interceptor.classes"], entry) if isinstance(entry, str) else entry
            for entry in parsed["interceptor.classes"]
        )
        notes = tuple(note for rule in RULES for note in rule(parsed, originals))
        _refuse_unavailable(parsed, originals, features)
        object.__setattr__(self, "_bootstrap", parse_bootstrap(parsed["bootstrap.servers"]))
        object.__setattr__(self, "_originals", MappingProxyType(originals))
        object.__setattr__(self, "_values", MappingProxyType(parsed))
        object.__setattr__(self, "_notes", notes)
        object.__setattr__(self, "_features", features)

    def __getitem__(self, name: str) -> Any:
        values = self._values
        return values[name] if name in values else values[name.replace("_", ".")]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    # Each would go through ``__getitem__``, option by option.

    def items(self) -> ItemsView[str, Any]:
        return self._values.items()

    def values(self) -> ValuesView[Any]:
        return self._values.values()

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a ProducerConfig does not change; make one with replace({name}=...)")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a ProducerConfig does not change")

    def explicit(self, name: str) -> bool:
        """Whether the user gave this option (even if with its default's value)."""
        return name.replace("_", ".") in self._originals

    def originals(self) -> dict[str, Any]:
        """What was given, by Kafka's names, values as they were; passwords are ``Secret``."""
        return dict(self._originals)

    @property
    def notes(self) -> tuple[Note, ...]:
        """What was adjusted; logged when this was made."""
        return self._notes

    @property
    def bootstrap(self) -> tuple[HostPort, ...]:
        """The bootstrap servers, each once."""
        return self._bootstrap

    @door()
    def replace(self, values: Mapping[str, Any] | None = None, /, **options: Unpack[ProducerOptions]) -> ProducerConfig:
        """A configuration with further or other options; they count as given."""
        changed = _collect(values or {}, options, self._features)
        return ProducerConfig({**self._originals, **changed}, features=self._features)

    def describe(self) -> str:
        """Every option and its value, a line each, for the log; passwords hidden, given ones marked."""
        return "\n".join(
            f"{name} = {_told(name, self._shown(name, value))}{' (given)' if name in self._originals else ''}"
            for name, value in self._values.items()
        )

    def _shown(self, name: str, value: Any) -> Any:
        given = self._originals.get(name)
        return given if isinstance(given, Placeholder) else value

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={_told(name, value)}" for name, value in self._originals.items())
        return f"<ProducerConfig {given}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (dict(self._originals),)


def next_client_id(config: ProducerConfig, counter: Iterator[int]) -> str:
    """``client.id`` as given (even empty), else ``producer-`` and the transactional.id or the counter's next number."""
    return client_id_of(config, config.originals(), counter)


def _restore(originals: dict[str, Any]) -> ProducerConfig:
    """From a pickle: parsed anew, as another version may have other rules, but what it says was said before."""
    config = ProducerConfig.__new__(ProducerConfig)
    config._fill(originals, AVAILABLE)
    return config


def is_option(key: str) -> bool:
    """Whether a name in any spelling is an option's."""
    return kafka_name(key) in _TABLE


def refusal(name: str, value: Any) -> str | None:
    """Why an option would be refused if it were the only one, or None; nothing is logged."""
    try:
        ProducerConfig.__new__(ProducerConfig)._fill(
            _collect({"bootstrap.servers": "localhost:9092"} | {name: value}, {}, AVAILABLE), AVAILABLE
        )
    except ConfigError as error:
        return error.message
    return None


def unavailable(hint: str) -> str:
    """To be added to a hint that names options: what they need and this version has not, or nothing."""
    return lack(hint, _TABLE, AVAILABLE)


def _collect(values: Mapping[Any, Any], options: Mapping[str, Any], features: frozenset[Feature]) -> dict[str, Any]:
    """What was given by Kafka's names: no unknown key, none twice, None left out."""
    found: dict[str, Any] = {}
    spelled: dict[str, str] = {}
    for key, value in (*values.items(), *options.items()):
        if not isinstance(key, str):
            shown = described(key) if isinstance(key, (bytes, tuple, list)) else repr(key)
            raise ConfigError(f"Option names are strings, got {shown}")
        name = key if key in _TABLE else key.replace("_", ".")
        if name in ALIASES:
            name, convert = ALIASES[name]
            value = value if value is None or convert is None else convert(value)
        if name not in _TABLE:
            raise unknown(key, value, _TABLE, features)
        if value is None:
            continue
        if name in found:
            raise ConfigError(f"Option {name} is given twice: as {spelled[name]!r} and as {key!r}")
        found[name] = value
        spelled[name] = key
    return found


def _told(name: str, value: Any) -> str:
    if isinstance(value, Secret):
        return repr(value)
    return HIDDEN if value and _TABLE[name].guarded else shown_value(value)


def _held(option: Option, value: Any, providers: Providers) -> Any:
    """What is kept of a given value: a secret does not show itself, and a placeholder stays one."""
    text = value.reveal() if type(value) is Secret and value.is_text else value
    # Before anything is made of it: an error of the encoding itself would hold the text of a password.
    option.check_text(text)
    if not isinstance(text, str):
        return value
    if providers.has(text):
        if option in _OF_PROVIDERS:
            raise option.refusal(value, "no placeholder may be in the options that say what placeholders may read")
        placeholder = Placeholder(text, providers, option.name)
        for path in placeholder.files():
            option.check_place(path)  # and once more when it is read
        return placeholder
    return Secret(text) if option.secret else value


def _parsed(option: Option, value: Any) -> Any:
    """The option's value.  Placeholders are resolved now, unless they are looked up each time the value is used."""
    if not isinstance(value, Placeholder) or option.secret or option.placeholders:
        return option.parse(value)
    text = value.reveal()
    try:
        option.check_text(text)
        return option.parse(text)
    except ConfigError:
        # What a placeholder stands for may be a secret of somebody who took the wrong name.
        raise ConfigError(
            f"Invalid value for option {option.name}: what stands for {value!r} has {len(text)} characters; it must be "
            f"{option.allowed()}"
        ) from None


def _refuse_unavailable(parsed: Mapping[str, Any], originals: Mapping[str, Any], features: frozenset[Feature]) -> None:
    for name in originals:
        option = _TABLE[name]
        missing = option.missing(parsed[name], features)
        if missing:
            shown = "" if option.secret else f"={shown_value(originals[name])}"
            if missing == (Feature.JVM,):
                raise ConfigError(
                    f"Option {name}{shown} has no meaning outside of a Java virtual machine; leave it out"
                )
            machinery = " and no ".join(feature.value for feature in missing)
            raise ConfigError(f"Option {name}{shown} is not available in this version: it has no {machinery}")


__all__ = ["ConfigError", "HostPort", "Importance", "Note", "Option", "ProducerConfig", "Secret", "Type", "table"]


def __dir__() -> list[str]:
    return sorted(__all__)
