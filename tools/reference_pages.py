"""Writes the pages of the documentation site that come out of the code: ``python -m tools.reference_pages FOLDER``.

``docs/conf.py`` calls it at the start of each build.  The pages are options, metrics and errors.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from forebay import errors
from forebay._metrics import names
from forebay._metrics.registry import Kind, MetricName
from forebay.config import AVAILABLE, Option, table
from forebay.config._aliases import ALIASES
from forebay.errors import KafkaError
from forebay.errors._others import CLASSES
from forebay.metrics._exported import prometheus_name

FLAGS = ("retriable", "fatal", "txn_requires_abort", "invalid_metadata")

OPTIONS_HEAD = """# Options

This table comes out of the code; `forebay config` prints it, too.  Names are the Java client's.  Write them dotted in a
mapping (`{"linger.ms": 5}`) or with underscores as keywords (`linger_ms=5`).  An unknown name is refused, and the error
says the nearest one.  `KafkaProducer.config` shows what is in effect.

Below each meaning are the default, the type, the allowed values, the importance, and the names that other
clients have for the option and that are taken, too.
"""
METRICS_HEAD = """# Metrics

`producer.metrics()` returns every metric by group, name and tags, as of now.  Names and groups are the Java client's.
Rates, means and maxima cover the windows of `metrics.num.samples` and `metrics.sample.window.ms`.  Totals count from
the start.  [Metrics and traces](../metrics.md) says how they get to Prometheus and OpenTelemetry.  The histogram is for
those alone.  The key of a metric, a `MetricName`, has its `kind` and `unit`.  These tables come out of the code.

```python
from forebay import KafkaProducer

with KafkaProducer(bootstrap_servers="localhost:9092") as producer:
    producer.send("topic", b"v").result(timeout=10)
    print("records:", producer.metrics().value("record-send-total"))
    print("of one topic:", producer.metrics().value("record-send-total", group="producer-topic-metrics", topic="topic"))
```

## What to watch

| Metric | It means |
|---|---|
| `record-error-rate` | Records are lost.  Alert on any value above 0. |
| `buffer-available-bytes`, `waiting-threads` | The buffer is full, and threads wait: brokers are slower than they. |
| `record-queue-time-avg` | How long batches wait before they are sent.  It is near `linger.ms` if all is well. |
| `request-latency-avg` | How long brokers take. |
| `record-retry-rate` | Brokers refuse or lose connections, and the producer sends again. |
| `batch-size-avg`, `records-per-request-avg` | How full batches are.  See [Tuning](../tuning.md). |
| `produce-throttle-time-avg` | A quota slows the producer. |
| `metadata-age` | Seconds since the cluster was last asked about itself. |
"""
ERRORS_HEAD = """# Error classes

This table comes out of the code.  [Errors](../errors.md) says which errors are raised and which arrive in futures.  All
classes are in `forebay.errors`, and each is a `KafkaError`.

The flags are attributes of the class and of each error: `retriable` (the producer tries again by itself), `fatal` (make
a new producer), `txn_requires_abort` (abort the transaction, then go on) and `invalid_metadata` (the producer asks the
cluster for metadata again).
"""


def row(*cells: str) -> str:
    """A row of a Markdown table."""
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def heading(*cells: str) -> list[str]:
    """The first two lines of a Markdown table."""
    return [row(*cells), "|" + "---|" * len(cells)]


def code(text: str) -> str:
    """Text as code; nothing if it is empty."""
    return f"`{text}`" if text else ""


def default_of(option: Option) -> str:
    """A default as a user writes it."""
    value = option.default
    if value is None:
        return "not set"
    if isinstance(value, tuple):
        return ",".join(value) or "empty"
    if isinstance(value, bool):
        return str(value).lower()
    return "all" if option.name == "acks" else str(value) or "empty"


def options_page() -> Iterator[str]:
    """Every option, in the order of ``forebay config``."""
    yield OPTIONS_HEAD
    yield from heading("Option", "Meaning")
    for option in table():
        others = ", ".join(code(name) for name, alias in ALIASES.items() if alias.name == option.name)
        missing = option.feature is not None and option.feature not in AVAILABLE
        remark = f" Not in this version: it needs {option.feature.value}." if missing and option.feature else ""
        own = " The Java client has no such option." if option.ours else ""
        facts = f"Default {code(default_of(option))}.  Type {option.type.value}: {option.allowed()}.  "
        facts += f"Importance {option.importance.value}."
        facts += f"  Also taken: {others}." if others else ""
        meaning = option.documentation.replace("*", "\\*").replace("<", "\\<") + own + remark
        yield row(code(option.name), f"{meaning}<br>*{facts}*")


def metric_table(title: str, group: str, rows: Iterable[names.Row]) -> Iterator[str]:
    """One group of metrics."""
    yield f"\n## {title}: `{group}`\n"
    yield from heading("Metric", "Kind", "Meaning", "In Prometheus")
    for each in sorted(set(rows), key=lambda each: each.name):
        name = MetricName(each.name, group, each.description, (), each.kind, each.unit)
        family = prometheus_name(name)
        family += "_total" if family and each.kind in (Kind.TOTAL, Kind.COUNT_TOTAL) else ""
        yield row(code(each.name), each.kind.value.partition(":")[0], each.description, code(family))


def metrics_page() -> Iterator[str]:
    """Every metric, by group."""
    yield METRICS_HEAD
    gauges = [names.Row("", name, Kind.GAUGE, each.description, each.unit) for name, each in names.GAUGES.items()]
    yield from metric_table("Of the producer", names.PRODUCER, [*names.PRODUCER_ROWS, *gauges])
    yield from metric_table("Of each topic", names.TOPIC, [*names.TOPIC_ROWS, names.TOPIC_HISTOGRAM])
    yield from metric_table("Of each broker", names.NODE, names.NODE_ROWS)


def error_classes() -> list[type[KafkaError]]:
    """Every class once: those without a broker's code first, then by code."""
    found = {kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, KafkaError)}
    found.update(CLASSES.values())
    return sorted(found, key=lambda kind: (-2 if kind.code is None else kind.code, kind.__name__))


def errors_page() -> Iterator[str]:
    """Every class of errors with its base, code and flags."""
    yield ERRORS_HEAD
    yield from heading("Class", "Kind of", "Broker's code", "Flags", "Meaning")
    for kind in error_classes():
        code_text = "" if kind.code is None else f"{kind.code} `{kind.name}`"
        flags = ", ".join(code(flag) for flag in FLAGS if getattr(kind, flag))
        bases = ", ".join(code(base.__name__) for base in kind.__bases__)
        meaning = (kind.__doc__ or "").strip().partition("\n")[0].replace("``", "`")
        yield row(code(kind.__name__), bases, code_text, flags, meaning)


PAGES: dict[str, Callable[[], Iterator[str]]] = {
    "options.md": options_page,
    "metrics.md": metrics_page,
    "errors.md": errors_page,
}


def write_pages(folder: Path) -> None:
    """Writes each page whose text has changed."""
    folder.mkdir(exist_ok=True)
    for name, lines in PAGES.items():
        text = "\n".join(lines()) + "\n"
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
