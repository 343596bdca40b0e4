"""Secrets and files of a sink: what the driver refuses or warns of, and where a task finds its files.

Options travel to the executors and stand in the plan and the event log, where Spark hides only what its patterns know.
So a secret is best a placeholder (``${env:...}``, with ``kafka.config.providers``), which a task resolves.
"""

from __future__ import annotations

import logging
import os
import platform
import re
from collections.abc import Callable, Mapping
from typing import Any

from forebay.config._door import door
from forebay.config._secret import path_fault
from forebay.errors import ConfigError

logger: logging.Logger = logging.getLogger("forebay.spark")

PREFIX = "kafka."
ALLOW_INLINE_KEY = "forebay.allow.inline.key"
SPARKFILES = "sparkfiles:"
"""Before the name of a file that came by ``--files`` or ``spark.files``."""
KEY = "ssl.keystore.key"
PUBLIC = ("ssl.keystore.certificate.chain", "ssl.truststore.certificates")
"""Of type password in Java, but everybody may see them."""
FILES = (
    "ssl.truststore.location",
    "ssl.keystore.location",
    "ssl.key.location",
    "ssl.crl.location",
    "sasl.kerberos.keytab",
    "sasl.oauthbearer.assertion.file",
    "sasl.oauthbearer.assertion.private.key.file",
    "sasl.oauthbearer.assertion.template.file",
)
REDACTED_BY_DEFAULT = {
    "spark.redaction.regex": r"(?i)secret|password|token|access[.]?key",
    "spark.sql.redaction.options.regex": r"(?i)url",
}
"""Spark 4.1's; a value is hidden if its key or itself matches one of them."""


@door(wrap=False)
def check(given: Mapping[str, str], allow_inline_key: bool, conf: Callable[[str], str | None] | None = None) -> None:
    """Looks at the secrets among a producer's options; on the driver.

    Args:
        given: the producer's options without their prefix, names as in Kafka.
        conf: the session's configuration; without it Spark's default patterns are taken.

    Raises:
        ConfigError: a private key stands in the options.
    """
    from forebay.config import ProducerConfig, Secret, table

    originals = ProducerConfig(given).originals()
    secret = {option.name for option in table() if option.secret} - set(PUBLIC)
    shown = {name: value.reveal() for name, value in originals.items() if name in secret and type(value) is Secret}
    if KEY in shown and not allow_inline_key:
        raise ConfigError(
            f"Option '{PREFIX}{KEY}' holds a private key, and Spark writes options to its plan and event log: give "
            f"'{PREFIX}ssl.keystore.location' (a file, or sparkfiles:NAME of --files), or a placeholder such as "
            f"${{env:KEY}} with {PREFIX}config.providers=env; or set {ALLOW_INLINE_KEY}=true if everybody who sees the "
            "plan may have the key"
        )
    patterns = [re.compile(pattern) for pattern in redaction(conf)]
    for name, value in shown.items():
        if not any(pattern.search(PREFIX + name) or pattern.search(value) for pattern in patterns):
            logger.warning(
                "Spark does not hide %s%s in its plan and event log (spark.redaction.regex): use a placeholder such as "
                "${env:...} with %sconfig.providers=env",
                PREFIX,
                name,
                PREFIX,
            )


def redaction(conf: Callable[[str], str | None] | None) -> list[str]:
    """The patterns of what Spark hides."""
    found = []
    for name, default in REDACTED_BY_DEFAULT.items():
        given = conf(name) if conf is not None else None
        found.append(default if given is None else given)
    return [pattern for pattern in found if pattern]


def session_conf() -> Callable[[str], str | None] | None:
    """Reads the configuration of this process' session; None where there is none, as in Spark's planner."""
    try:
        from pyspark.sql import SparkSession

        session = SparkSession.getActiveSession()
    except Exception:  # noqa: BLE001 - Spark Connect, or no JVM: the defaults are taken
        return None
    return None if session is None else lambda name: session.conf.get(name, None)


@door(wrap=False)
def in_task(options: Mapping[str, str], root: Callable[[str], str] | None = None) -> dict[str, str]:
    """The options with the paths of this process, a task's or the driver's; a task does so before its first row.

    Args:
        root: gives the path of a ``sparkfiles:`` name; SparkFiles.get.

    Raises:
        ConfigError: a file is not there; names option, path and host.
    """
    from forebay.config import ProducerConfig
    from forebay.config._door import kafka_name
    from forebay.config._placeholders import Placeholder

    found = dict(options)
    given = ProducerConfig(options).originals() if any("${" in value for value in options.values()) else {}
    for name, value in options.items():
        option = kafka_name(name)
        if option not in FILES or isinstance(given.get(option), Placeholder):
            continue  # a placeholder is resolved where the connection is made
        fault = path_fault(value)
        if fault is not None:
            raise ConfigError(f"Option '{PREFIX}{option}': {fault}")
        path = value
        if value.startswith(SPARKFILES):
            path = (root or _spark_file)(value.removeprefix(SPARKFILES))
        path = os.path.abspath(path)  # a relative name is one in the task's working folder
        if not os.path.exists(path):
            host = platform.node()
            hint = "give the file with --files and write sparkfiles:NAME, or put it there on every executor"
            raise ConfigError(f"Option '{PREFIX}{option}': there is no file {path} on {host}; {hint}")
        found[name] = path
    return found


def _spark_file(name: str) -> Any:
    from pyspark import SparkFiles

    return SparkFiles.get(name)
