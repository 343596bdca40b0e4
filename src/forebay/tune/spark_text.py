"""What is said of a DataFrame's write: sentences with cause, effect and price, and at most 40 lines of text."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from forebay._closed_forms.node import MIB
from forebay._closed_forms.wording import Facts, plain, size
from forebay.tune.described import wrapped
from forebay.tune.reasons import Reason
from forebay.tune.spark_table import ARROW_ROWS, SparkWrite, WriteFigures

MOST_NODES = 3
WORTH_A_SHUFFLE = 0.2
"""Share of the requests that has to be saved before moving all rows is spoken for."""
HANDED_OVER = MIB
"""Bytes of an Arrow batch that ``docs/spark.md`` recommends: rows stay in the processor's cache."""


def reasons_for(found: SparkWrite) -> tuple[Reason, ...]:
    """The most important one first."""
    told = [_tasks(found)]
    if found.grouped is not None:
        told.append(_grouped(found, found.grouped))
    if found.trigger_s is not None:
        told.append(_trigger(found, found.trigger_s))
    if found.table.arrow_bytes > HANDED_OVER:
        told.append(_arrow(found))
    return (*told, _memory(found))


def _reason(kind: str, what: str, cause: str, effect: str, price: str, facts: Facts) -> Reason:
    said = "; ".join(filter(None, (cause, ", ".join(filter(None, (effect, price))))))
    return Reason(kind, f"{what}: {said}.", cause, effect, price, facts.values)


def _busy(facts: Facts, present: WriteFigures) -> str:
    tasks = facts.number("tasks", present.tasks)
    return f"{tasks} tasks at a time keep the handlers of node {present.busiest} busy for " + facts.share(
        "busy", max(present.busy)
    )


def _tasks(found: SparkWrite) -> Reason:
    """How many tasks may run, and what fewer of them change."""
    facts, present, fewer = Facts(), found.present, found.fewer
    cause, limit = _busy(facts, present), facts.share("limit", found.busy_limit)
    if fewer is None:
        if max(present.busy) > found.busy_limit:
            effect = f"that is more than {limit}, and fewer tasks than one there are not"
            return _reason("tasks", "Make the batches larger", cause, effect, "", facts)
        rises = facts.change("p99", found.before_ms[1], present.others_p99_ms, "ms")
        effect = f"that is within {limit}, and the p99 of another producer goes {rises}"
        return _reason("leave", "Leave the tasks as they are", cause, effect, "", facts)
    what = f"coalesce({facts.number('coalesce', fewer.tasks)})"
    effects = [
        f"busy {facts.share('busy', max(present.busy))} ▸ {facts.share('busy_after', max(fewer.busy))}",
        f"requests {facts.change('requests', present.requests, fewer.requests)}",
        f"p99 of another producer {facts.change('p99', present.others_p99_ms, fewer.others_p99_ms, 'ms')}",
    ]
    alone = facts.number("p99_without", found.before_ms[1], "ms")
    longer = facts.change("seconds", present.seconds, fewer.seconds, "s")
    price = f"price: the write takes {longer}" if fewer.seconds > present.seconds else f"the write takes {longer}"
    told = f"{', '.join(effects)} ({alone} without the write)"
    if max(fewer.busy) > found.busy_limit:
        told += f"; {limit} cannot be kept"
    return _reason("tasks", what, f"{cause}, and every request waits for them", told, price, facts)


def _grouped(found: SparkWrite, grouped: WriteFigures) -> Reason:
    """What it saves to have the rows of a partition in one task."""
    facts, present, table = Facts(), found.present, found.table
    rows = facts.number("rows", table.rows / table.in_all / table.partitions)
    cause = f"a task has {rows} rows for each of {facts.number('partitions', table.partitions)} partitions"
    requests = facts.change("requests", present.requests, grouped.requests)
    saved = 1 - grouped.requests / present.requests if present.requests else 0.0
    batches = facts.change("rows_batch", present.rows_a_batch, grouped.rows_a_batch)
    effect = f"with those of a partition in one of {facts.number('tasks', grouped.tasks)} tasks a batch has {batches} "
    effect += f"rows, requests {requests}"
    price = "price: a shuffle of the table"
    if saved >= WORTH_A_SHUFFLE:
        return _reason("repartition", "forebay.spark.repartition(df, options)", cause, effect, price, facts)
    return _reason("leave", "Leave out forebay.spark.repartition", cause, effect, "less than a shuffle is worth", facts)


def _trigger(found: SparkWrite, trigger_s: float) -> Reason:
    facts = Facts()
    takes, has = facts.number("seconds", found.present.seconds, "s"), facts.number("trigger", trigger_s, "s")
    fits = found.present.seconds <= trigger_s
    cause = f"a write takes {takes} of {has}, beside what Spark itself takes"
    effect = "" if fits else "micro-batches come later and later"
    return _reason(
        "trigger", "The trigger is long enough" if fits else "Take a longer trigger", cause, effect, "", facts
    )


def _arrow(found: SparkWrite) -> Reason:
    facts, table = Facts(), found.table
    cause = f"Spark hands over {facts.number('arrow_rows', table.arrow_rows)} rows at a time, which are "
    cause += facts.size("arrow_bytes", table.arrow_rows * table.row_bytes)
    small = max(1, min(ARROW_ROWS, HANDED_OVER // table.row_bytes))
    effect = f"with {facts.number('arrow_rows_after', small)} they stay in the processor's cache, and brokers get them "
    effect += "more evenly"
    return _reason("arrow", "spark.sql.execution.arrow.maxBytesPerBatch=1m", cause, effect, "no cost", facts)


def _memory(found: SparkWrite) -> Reason:
    facts, table = Facts(), found.table
    tasks = facts.number("tasks_executor", -(-table.tasks // table.executors))
    cause = f"an executor's {tasks} producers take up to {facts.size('memory', found.memory)} outside of the JVM"
    return _reason("memory", "spark.executor.memoryOverhead", cause, "", "", facts)


# -- the text ------------------------------------------------------------------------------------------------


def write_text(found: SparkWrite) -> str:
    """The lines, each with its end."""
    lines = [
        *_question(found),
        "",
        *_columns(found),
        "",
        *(line for number, each in enumerate(found.reasons) for line in wrapped("" if number else "advice", each.text)),
        *_failed(found),
        *wrapped("assumed", "; ".join(found.assumptions)),
    ]
    return "".join(f"{line}\n" for line in lines)


def _question(found: SparkWrite) -> Iterator[str]:
    table = found.table
    keys = "keyed" if table.keyed else "without keys"
    if table.grouped:
        keys += ", those of a partition in one task"
    yield f"{'table':<10}{table.rows:,} rows of {table.row_bytes:,} B, {keys}, to {table.partitions:,} partitions"
    yield (
        f"{'tasks':<10}{table.in_all:,} in all, {table.tasks:,} at a time on {table.executors:,} executor(s); each "
        f"hands over up to {table.rows_s:,.0f} rows/s, {table.arrow_rows:,} at a time"
    )
    settings = " ".join(f"{name}={value}" for name, value in found.settings.items())
    yield from wrapped("settings", settings)[:2]
    p50, p99 = found.before_ms
    yield f"{'others':<10}p50 {p50:,.2f} ms, p99 {p99:,.2f} ms before the write, of another producer; seed {found.seed}"


def _columns(found: SparkWrite) -> Iterator[str]:
    shown = {"as it is": found.present}
    if found.fewer is not None:
        shown[f"coalesce({found.fewer.tasks})"] = found.fewer
    if found.grouped is not None:
        shown["repartition"] = found.grouped
    yield f"{'':<32}{''.join(f'{name:>16}' for name in shown)}"
    rows: dict[str, Callable[[WriteFigures], str]] = {
        "tasks at a time, in all": lambda each: f"{each.tasks:,}, {each.splits:,}",
        "seconds of the write": lambda each: f"{each.seconds:,.1f}",
        "requests": lambda each: f"{each.requests:,}",
        "bytes of a request": lambda each: size(round(each.bytes_a_request)),
        "batches of a task": lambda each: f"{each.batches / each.splits:,.1f}",
        "rows of a batch": lambda each: f"{each.rows_a_batch:,.1f}",
        "fill of a batch": lambda each: f"{each.fill:.1%}",
        "p50 of another producer, ms": lambda each: f"{each.others_p50_ms:,.2f}",
        "p99 of another producer, ms": lambda each: f"{each.others_p99_ms:,.2f}",
    }
    for name, text in rows.items():
        yield f"{name:<32}{''.join(f'{text(each):>16}' for each in shown.values())}"
    order = sorted(range(len(found.present.busy)), key=lambda at: -found.present.busy[at])
    for at in order[:MOST_NODES]:
        cells = (f"{each.requests_s[at]:,.0f}, {each.busy[at]:.1%}" for each in shown.values())
        yield f"{f'node {at + 1}: requests/s, busy':<32}{''.join(f'{cell:>16}' for cell in cells)}"


def _failed(found: SparkWrite) -> Iterator[str]:
    if found.present.failed:
        yield f"{'lost':<10}{plain(found.present.failed)} rows of a task are not acknowledged in time: the write fails"
