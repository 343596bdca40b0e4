"""Workload: what comes to a producer: how many records and how large, with which keys, to which topics, from whom."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from forebay.model._wire import shown, topic_fault
from forebay.tune._checks import TuneError, choice, number, refused, shares, whole
from forebay.tune.files import in_file, read
from forebay.tune.fitting import trace_streams
from forebay.tune.trace import Trace

if TYPE_CHECKING:
    import os

ARRIVALS = ("poisson", "regular")
CALLERS = ("open", "closed")
MAX_RATE = 10_000_000
MAX_SIZE = 1 << 30
LEAST_BURST_MS = 0.1
"""A simulation looks at each burst by itself."""
MAX_KEYS = 1_000_000
MAX_PARTITIONS = 100_000
LONGEST_NUMBER = 20
"""Digits of a size that is a key."""


@dataclass(frozen=True, slots=True)
class Lognormal:
    """Sizes whose logarithm is normal: many small records and a few large ones."""

    median: float
    sigma: float
    most: int = 1_000_000
    """A larger size is drawn again, so that no record is above the limit of requests."""

    def __post_init__(self) -> None:
        number("sizes median", self.median, 0, MAX_SIZE, above=True)
        number("sizes sigma", self.sigma, 0, 5)
        whole("sizes most", self.most, 1, MAX_SIZE)
        if self.most < self.median:
            raise refused("sizes most", self.most, f"at least the median, {self.median:g}")


@dataclass(frozen=True, slots=True)
class Mix:
    """Sizes drawn at random; each with its share of 1."""

    pairs: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class Cycle:
    """Sizes in turn; one alone is a fixed size."""

    values: tuple[int, ...]


Sizes = Cycle | Mix | Lognormal


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys that decide the partition: ``count`` of them, of which a few come often if ``zipf`` is over 0."""

    count: int
    zipf: float = 0.0

    def __post_init__(self) -> None:
        whole("keys count", self.count, 1, MAX_KEYS)
        number("keys zipf", self.zipf, 0, 10)


@dataclass(frozen=True, slots=True)
class Burst:
    """The rate holds for ``on_ms``, and nothing comes for ``off_ms``, again and again."""

    on_ms: float
    off_ms: float

    def __post_init__(self) -> None:
        number("burst on_ms", self.on_ms, LEAST_BURST_MS, 86_400_000)
        number("burst off_ms", self.off_ms, 0, 86_400_000)


@dataclass(frozen=True, slots=True)
class Compression:
    """What a codec makes of batches."""

    ratio: float
    """Bytes after it, by those before; of full batches, if ``by_size`` tells others apart."""
    ms_per_mib: float = 2.0
    """Of one processor."""
    by_size: tuple[tuple[int, float], ...] = ()
    """(bytes before it, ratio) of batches that are smaller, in rising order: they have less that repeats."""

    def __post_init__(self) -> None:
        number("compression ratio", self.ratio, 0, 2, above=True)
        number("compression ms_per_mib", self.ms_per_mib, 0, 10_000)
        _set(self, "by_size", _by_size(self.by_size))

    def of(self, size: int) -> float:
        """The ratio of a batch of so many bytes: between two known sizes in between, by the logarithm of the size."""
        before: tuple[int, float] | None = None
        for step in self.by_size:
            if size <= step[0]:
                if before is None:
                    return step[1]
                place = math.log(size / before[0]) / math.log(step[0] / before[0])
                return before[1] + place * (step[1] - before[1])
            before = step
        return self.ratio if before is None else before[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """Records of one kind.  Values as they are given in a file; they are checked, and kept in one form."""

    rate: float | tuple[tuple[float, float], ...] = 1.0
    """Records a second of one producer, or steps of (second from which on, rate)."""
    sizes: Sizes = Cycle((100,))
    """Bytes of a value."""
    arrivals: str = "poisson"
    burst: Burst | None = None
    keys: Keys | None = None
    key_sizes: Sizes = Cycle((8,))
    partitions: tuple[float, ...] = ()
    """The share of each partition where the caller names it; empty: it does not."""
    topic: str | None = None
    """None: the topics in turn."""
    threads: int = 1
    callers: str = "open"
    """``open``: records come whatever happens, and those that find no free thread wait for one.  ``closed``: a thread
    makes its next record ``think_ms`` after its call returned, and ``rate`` is not looked at."""
    think_ms: float = 0.0
    callbacks: bool = False
    """Each record has a callback of its own, which takes memory of ``buffer.memory``, too."""
    batch_rows: int = 1
    """More than 1: the records come as tables of so many rows, each by a call of ``send_batch``."""

    def __post_init__(self) -> None:
        _set(self, "rate", _rate(self.rate))
        _set(self, "sizes", sizes_of("sizes", self.sizes, 0))
        _set(self, "key_sizes", sizes_of("key_sizes", self.key_sizes, 1))
        _set(self, "keys", _keys(self.keys))
        choice("arrivals", self.arrivals, ARRIVALS)
        choice("callers", self.callers, CALLERS)
        whole("threads", self.threads, 1, 1000)
        number("think_ms", self.think_ms, 0, 3_600_000)
        if not isinstance(self.callbacks, bool):
            raise refused("callbacks", self.callbacks, "true or false")
        whole("batch_rows", self.batch_rows, 1, 10_000_000)
        _set(self, "burst", _burst(self.burst))
        if not isinstance(self.partitions, Sequence) or isinstance(self.partitions, str):
            raise refused("partitions", self.partitions, "a list of shares, one of each partition")
        _set(self, "partitions", tuple(number("partitions share", share, 0) for share in self.partitions))
        if self.partitions and sum(self.partitions) <= 0:
            raise refused("partitions", list(self.partitions), "a list with a share over 0")
        if self.partitions and self.keys is not None:
            raise refused("keys", self.keys, "left out where partitions are named: these do not go by keys")
        if self.callers == "closed" and self.think_ms == 0:
            raise refused(
                "think_ms", self.think_ms, "above 0 for closed callers, or a call would follow a call at once"
            )

    @property
    def mean_rate(self) -> float:
        """Records a second: of steps the highest, because memory and brokers have to stand that."""
        if self.callers == "closed":
            return self.threads * self.batch_rows * 1000 / self.think_ms
        top = self.rate if isinstance(self.rate, float) else max(rate for _second, rate in self.rate)
        return top if self.burst is None else top * self.burst.on_ms / (self.burst.on_ms + self.burst.off_ms)

    def scaled(self, factor: float) -> Self:
        """With so many times the records."""
        if self.callers == "closed":
            return replace(self, think_ms=self.think_ms / factor)
        if isinstance(self.rate, float):
            return replace(self, rate=self.rate * factor)
        return replace(self, rate=tuple((second, rate * factor) for second, rate in self.rate))

    def sooner(self, factor: float) -> Self:
        """With all changes of the rate so many times sooner."""
        if isinstance(self.rate, float):
            return self
        return replace(self, rate=tuple((second / factor, rate) for second, rate in self.rate))


@dataclass(frozen=True, slots=True, init=False)
class Workload:
    """What comes to each of ``producers`` producers.

    Args:
        streams: records of several kinds; instead of them the fields of one Stream may be given (``rate=...``).
        topics: partitions by the topic's name.
        producers: how many of these there are.
        compression: what codecs make of batches, for settings with ``compression.type``.
        trace: what is replayed instead of the streams, which then only describe it for closed forms.
    """

    streams: tuple[Stream, ...]
    topics: tuple[tuple[str, int], ...]
    producers: int
    compression: Compression | None
    trace: Trace | None

    def __init__(
        self,
        streams: Sequence[Stream] = (),
        *,
        topics: Mapping[str, int] | Sequence[tuple[str, int]] = (("topic", 12),),
        producers: int = 1,
        compression: Compression | Mapping[str, float] | None = None,
        trace: Trace | None = None,
        **stream: Any,
    ) -> None:
        if bool(streams) == bool(stream):
            raise TuneError("a load needs a rate, such as rate = 2000, or several streams, each with its rate")
        if stream and "rate" not in stream:
            if stream.get("callers") != "closed":
                raise TuneError("a load needs a rate, such as rate = 2000")
        _set(self, "streams", tuple(streams) if streams else (Stream(**stream),))
        _set(self, "topics", _topics(topics))
        _set(self, "producers", whole("producers", producers, 1, 100_000))
        _set(self, "compression", _compression(compression))
        _set(self, "trace", trace)
        names = [name for name, _count in self.topics]
        for each in self.streams:
            if each.topic is not None:
                choice("topic", each.topic, names)
            for name, count in self.topics:
                if each.topic in (None, name) and len(each.partitions) > count:
                    raise refused("partitions", list(each.partitions), f"at most {count} shares for topic {name}")

    @classmethod
    def from_toml(cls, path: str | os.PathLike[str]) -> Self:
        """The table ``[load]`` of a file.

        Raises:
            ConfigError: no such file, or something in it is not right.
        """
        return in_file(path, lambda: cls.of(read(path).load))

    @classmethod
    def replaying(
        cls, trace: Trace, *, producers: int = 1, compression: Compression | Mapping[str, float] | None = None
    ) -> Self:
        """The load that a trace is; several producers begin at different seconds of it."""
        ratio = trace.compression()
        if compression is None and ratio is not None:
            compression = Compression(ratio)
        streams = [Stream(**stream) for stream in trace_streams(trace)]
        return cls(streams, topics=trace.topics, producers=producers, compression=compression, trace=trace)

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Self:
        """What a table ``[load]`` says; its keys are known.

        Raises:
            ConfigError: a value is not right, or there is no trace where it says.
        """
        if "trace" in table:
            return cls._of_trace(table)
        whole_load = {key: table[key] for key in ("topics", "producers", "compression") if key in table}
        single = {key: value for key, value in table.items() if key not in (*whole_load, "stream")}
        if "stream" not in table:
            return cls(**whole_load, **single)
        if single:
            raise refused("load", sorted(single), "[[load.stream]] for several kinds of records, or the keys of one")
        return cls([Stream(**stream) for stream in table["stream"]], **whole_load)

    @classmethod
    def _of_trace(cls, table: Mapping[str, Any]) -> Self:
        others = sorted(set(table) - {"trace", "producers", "compression"})
        if others:
            raise refused("load", others, "left out beside a trace, which says what comes")
        if not isinstance(table["trace"], str):
            raise refused("trace", table["trace"], "the name of a file")
        more = {key: table[key] for key in ("producers", "compression") if key in table}
        return cls.replaying(Trace.open(table["trace"]), **more)

    @property
    def rate(self) -> float:
        """Records a second of one producer."""
        return sum(stream.mean_rate for stream in self.streams)

    def compressed(self, compression: Compression) -> Self:
        """The same load whose batches compress so."""
        return self._with(compression=compression)

    def scaled(self, factor: float) -> Self:
        """The same load with so many times the records; closed callers think for so much less."""
        number("factor", factor, 0, 1000, above=True)
        streams = [stream.scaled(factor) for stream in self.streams]
        trace = None if self.trace is None else self.trace.scaled(factor)
        return self._with(streams=streams, trace=trace)

    def sooner(self, factor: float) -> Self:
        """The same load with all changes of the rate so many times sooner."""
        return self._with(streams=[stream.sooner(factor) for stream in self.streams])

    def of_producers(self, count: int) -> Self:
        """The same load of each of so many producers."""
        return self._with(producers=count)

    def _with(self, **changed: Any) -> Self:
        names = ("streams", "topics", "producers", "compression", "trace")
        return type(self)(**{name: getattr(self, name) for name in names} | changed)


def sizes_of(key: str, given: Any, low: int) -> Sizes:
    """Sizes in the one form that they are kept in.

    Args:
        given: a number; ``{size: share}``; a list of sizes in turn; ``{"median": ..., "sigma": ...}``.
        low: the smallest size that is allowed.
    """
    if isinstance(given, Lognormal):
        return given
    if isinstance(given, Cycle):
        given = given.values
    if isinstance(given, Mix):
        given = dict(given.pairs)
    if isinstance(given, Mapping) and "median" in given:
        unknown = set(given) - {"median", "sigma", "most"}
        if unknown or "sigma" not in given:
            raise refused(key, dict(given), "a table with median and sigma (and most)")
        return Lognormal(**given)
    if isinstance(given, Mapping):
        numbers = {whole(key, _as_number(value), low, MAX_SIZE): share for value, share in given.items()}
        if not numbers:
            raise refused(key, {}, "a table with a size and its share")
        return Mix(shares(key, numbers))
    values = [given] if isinstance(given, int) else given
    if not isinstance(values, Sequence) or isinstance(values, str) or not values:
        raise refused(key, given, "a size, a list of sizes, a table of sizes and shares, or median and sigma")
    return Cycle(tuple(whole(key, value, low, MAX_SIZE) for value in values))


def _as_number(text: Any) -> Any:
    # The keys of a table in TOML are texts.
    good = isinstance(text, str) and text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER
    return int(text) if good else text


def _rate(given: Any) -> float | tuple[tuple[float, float], ...]:
    if not isinstance(given, Sequence) or isinstance(given, str):
        return number("rate", given, 0, MAX_RATE, above=True)
    steps: list[tuple[float, float]] = []
    for step in given:
        if not isinstance(step, Sequence) or len(step) != 2:
            raise refused("rate", step, "a number, or a list of [second, rate]")
        second = number("rate, a step's second", step[0], 0, 86_400)
        if steps and second <= steps[-1][0]:
            raise refused("rate, a step's second", step[0], f"above that of the step before, {steps[-1][0]:g}")
        steps.append((second, number("rate, a step's rate", step[1], 0, MAX_RATE)))
    if not steps or steps[0][0] != 0 or max(rate for _second, rate in steps) == 0:
        raise refused("rate", given, "a list of [second, rate] that begins at second 0 and has a rate over 0")
    return tuple(steps)


def _keys(given: Any) -> Keys | None:
    if given is None or isinstance(given, Keys):
        return given
    if given == "none":
        return None
    if not isinstance(given, Mapping) or "count" not in given or set(given) - {"count", "zipf"}:
        raise refused("keys", given, "'none', or a table with count and zipf")
    return Keys(**given)


def _burst(given: Any) -> Burst | None:
    if given is None or isinstance(given, Burst):
        return given
    if not isinstance(given, Mapping) or set(given) != {"on_ms", "off_ms"}:
        raise refused("burst", given, "a table with on_ms and off_ms")
    return Burst(**given)


def _compression(given: Any) -> Compression | None:
    if given is None or isinstance(given, Compression):
        return given
    if not isinstance(given, Mapping) or "ratio" not in given or set(given) - {"ratio", "ms_per_mib", "by_size"}:
        raise refused("compression", given, "a table with ratio (and ms_per_mib, by_size)")
    return Compression(**given)


def _by_size(given: Any) -> tuple[tuple[int, float], ...]:
    pairs = given.items() if isinstance(given, Mapping) else given
    try:
        steps = [(size, ratio) for size, ratio in pairs]
    except (TypeError, ValueError):
        raise refused("compression by_size", given, "a table of bytes and ratios") from None
    return tuple(
        sorted(
            (
                whole("compression by_size", _as_number(size), 1),
                number("compression by_size, ratio", ratio, 0, 100, above=True),
            )
            for size, ratio in steps
        )
    )


def _topics(given: Any) -> tuple[tuple[str, int], ...]:
    try:
        pairs = tuple(given.items()) if isinstance(given, Mapping) else tuple((name, count) for name, count in given)
    except (TypeError, ValueError):
        raise refused("topics", given, "a table of names and partitions") from None
    if not pairs:
        raise refused("topics", given, "a table with a name and its partitions")
    for name, count in pairs:
        fault = topic_fault(name) if isinstance(name, str) else "it is no text"
        if fault is not None:
            raise refused("topics", shown(str(name)), f"names that a topic can have: {fault}")
        whole(f"topics, partitions of {name}", count, 1, MAX_PARTITIONS)
    return pairs


def _set(value: Any, name: str, to: Any) -> None:
    object.__setattr__(value, name, to)
