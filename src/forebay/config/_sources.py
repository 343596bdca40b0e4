"""Options from a properties file and from environment variables; a refusal names the line or the variable."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from forebay._runtime.files import NoTextError, without_mark
from forebay.config._door import door
from forebay.config._properties import HALF, EscapeError, properties
from forebay.errors import ConfigError
from forebay.model._wire import is_utf8

if TYPE_CHECKING:
    from typing import Unpack

    from forebay.config import ProducerConfig
    from forebay.config._typed import ProducerOptions


OF_THE_PACKAGE = frozenset({"INTERPRETED", "DEBUG", "ALLOWED_PATHS", "ALLOWED_URLS"})
"""``FOREBAY_`` variables that are no options."""
OF_A_SERVICE = re.compile(
    r"(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)", re.ASCII
)
"""What Kubernetes sets for each service, after a prefix that is the service's name: ``KAFKA_PORT=tcp://10.0.0.1:9092``."""

_BROKER_SETTINGS = """
    ADVERTISED_ AUTHORIZER_ AUTO_CREATE_ AUTO_LEADER_ BROKER_ID BROKER_RACK BROKER_HEARTBEAT_ BROKER_SESSION_
    CONFLUENT_ CONTROLLED_ CONTROLLER_ DEFAULT_REPLICATION_ DELETE_TOPIC_ GROUP_CONSUMER_ GROUP_COORDINATOR_
    GROUP_INITIAL_ GROUP_MAX_ GROUP_MIN_ GROUP_SHARE_ GROUP_STREAMS_ INITIAL_ INTER_BROKER_ LEADER_ LISTENER_ LISTENERS
    LOG_CLEANER_ LOG_CLEANUP_ LOG_DELETE_ LOG_FLUSH_ LOG_INDEX_ LOG_INITIAL_ LOG_LOCAL_ LOG_MESSAGE_ LOG_PREALLOCATE
    LOG_RETENTION_ LOG_ROLL_ LOG_SEGMENT_ METADATA_LOG_ MIN_INSYNC_ NODE_ID NUM_ OFFSETS_ PROCESS_ROLES REMOTE_LOG_
    REPLICA_ SASL_ENABLED_ SASL_MECHANISM_CONTROLLER_ SASL_MECHANISM_INTER_ SECURITY_INTER_ SHARE_COORDINATOR_
    SSL_CLIENT_AUTH SSL_PRINCIPAL_ SUPER_USERS TRANSACTION_STATE_ UNCLEAN_ ZOOKEEPER_
"""
_OF_IMAGES = """
    CERTIFICATE_ CFG_ CLIENT_LISTENER_ CLIENT_PASSWORDS CLIENT_USERS CLUSTER_ID CONF_FILE CONNECT_JMX_ CREATE_TOPICS
    DAEMON_ ENABLE_KRAFT EXPORTER_ JMX_ KRAFT_ LOG4J_ REST_ SKIP_KRAFT_ TLS_ TOOLS_
"""
_SECRETS_OF_IMAGES = r"SSL_(KEY|KEYSTORE|TRUSTSTORE)_(FILENAME|CREDENTIALS(_LOCATION)?)"
OF_KAFKA = re.compile(
    rf"KAFKA_(DEBUG|MODE|VERSION|(\w+_)?(OPTS?|HOME|DIRS?)|{_SECRETS_OF_IMAGES}|"
    rf"({'|'.join((_BROKER_SETTINGS + _OF_IMAGES).split())})\w*)",
    re.ASCII,
)
"""What Kafka's scripts read (``KAFKA_HEAP_OPTS``), and what images of Kafka set or make a broker's file of: Apache's,
Confluent's, Bitnami's and Strimzi's."""

_log = logging.getLogger("forebay.config")


class FromSources:
    """A base of what is made of options: ``from_properties`` and ``from_env``."""

    __slots__ = ()

    @classmethod
    @door()
    def from_properties(cls, path: str | os.PathLike[str], /, **overrides: Unpack[ProducerOptions]) -> Self:
        """Made of the options in a Java properties file.

        Class names of Java's serializers are taken for the built-in ones.  Placeholders (``${env:NAME}``, with
        ``config.providers``) stay placeholders: they are filled in when the option is used.

        Args:
            path: the file; UTF-8, else Latin-1 as in Java.
            overrides: more options, as keywords; they win over the file.

        Raises:
            ConfigError: the file cannot be read, or an option is refused; names the file and the line.
        """
        values: dict[str, str] = {}
        origins: dict[str, str] = {}
        for number, name, value in read_properties(path):
            values[name] = value
            origins[name] = f"{os.fspath(path)}:{number}"
        return cls(config_of(values, origins, overrides))  # type: ignore[call-arg]

    @classmethod
    @door(wrap=False)
    def from_env(
        cls, prefix: str = "FOREBAY_", /, environ: Mapping[str, str] | None = None, **overrides: Unpack[ProducerOptions]
    ) -> Self:
        """Made of the environment variables that begin with ``prefix``.

        The rest of a name is the option's, in capitals with ``_`` for ``.``: ``FOREBAY_BOOTSTRAP_SERVERS`` is
        ``bootstrap.servers``.  An empty variable counts as not set.  The variables that Kubernetes sets for a service
        (``KAFKA_PORT``, ``KAFKA_SERVICE_HOST``) are left alone.  So are those of Kafka's scripts and images
        (``KAFKA_HEAP_OPTS``, ``KAFKA_ADVERTISED_LISTENERS``) that no option has the name of; the log names them.

        Args:
            prefix: with its underscore, such as ``KAFKA_``.
            environ: in place of ``os.environ``.
            overrides: more options, as keywords; they win over the environment.

        Raises:
            ConfigError: an option is refused, or there is none of the name; names the variable.
            ValueError: the prefix is empty.
        """
        if not prefix:
            raise ValueError("from_env needs a prefix: without one, each variable of the process would be an option")
        from forebay.config import is_option

        values: dict[str, str] = {}
        origins: dict[str, str] = {}
        passed: list[str] = []
        for variable, value in sorted((os.environ if environ is None else environ).items()):
            rest = variable.removeprefix(prefix)
            name = rest.lower().replace("_", ".")
            if not variable.startswith(prefix) or not value:
                pass
            elif OF_KAFKA.fullmatch(variable) and not is_option(name):
                passed.append(variable)
            elif not _is_other(prefix, rest):
                values[name] = value
                origins[name] = f"environment variable {variable}"
        if passed:
            _log.info("Environment variables of Kafka's scripts and images are no options: %s", ", ".join(passed))
        return cls(config_of(values, origins, overrides))  # type: ignore[call-arg]


def _is_other(prefix: str, name: str) -> bool:
    return OF_A_SERVICE.fullmatch(name) is not None or (prefix == "FOREBAY_" and name in OF_THE_PACKAGE)


@door()
def read_properties(path: str | os.PathLike[str]) -> list[tuple[int, str, str]]:
    """Line number, name and value of each option in a properties file; of a name given twice the last, as in Java.

    Raises:
        ConfigError: no such file, unreadable, a line without a name, or one that Java refuses; with file and line.
    """
    shown = os.fspath(path)
    try:
        with open(path, "rb") as file:
            data = without_mark(file.read())
    except OSError as error:
        raise ConfigError(f"properties file {shown!r} cannot be read: {error.strerror}") from None
    except NoTextError as error:
        raise ConfigError(f"properties file {shown!r} {error}") from None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = data.decode("latin-1")  # what Java takes such files for
    found: dict[str, tuple[int, str, str]] = {}
    try:
        for number, name, value in properties(text):
            if not name:
                raise ConfigError(f"{shown}:{number}: no option's name in this line; write name=value")
            if not is_utf8(name + value):
                raise ConfigError(f"{shown}:{number}: {HALF}")
            found[name] = (number, name, value)
    except EscapeError as error:
        raise ConfigError(f"{shown}:{error.number}: {error}") from None
    return list(found.values())


@door(wrap=False)
def config_of(
    values: Mapping[str, str], origins: Mapping[str, str], overrides: Mapping[str, Any] | None = None
) -> ProducerConfig:
    """A configuration of ``values``, in whose place come ``overrides``.

    Args:
        origins: where each value was given, by its name.

    Raises:
        ConfigError: as ProducerConfig; begins with the origin of what is at fault.
    """
    from forebay.config import ProducerConfig, refusal
    from forebay.config._door import kafka_name

    replaced = {kafka_name(name) for name in overrides or ()}
    kept = {name: value for name, value in values.items() if kafka_name(name) not in replaced}
    try:
        return ProducerConfig(kept, **(overrides or {}))
    except ConfigError as error:
        # Alone, an option is refused in the same words.  What clashes with others has the origins of those it names.
        alone = [name for name, value in kept.items() if refusal(name, value) == error.message]
        words = {*re.findall(r"[a-z0-9_.]*[a-z0-9]", error.message)}
        found = alone[:1] or [name for name in kept if words & {name, kafka_name(name)}]
        if not found:
            raise
        raise ConfigError(f"{', '.join(dict.fromkeys(origins[name] for name in found))}: {error.message}") from error
