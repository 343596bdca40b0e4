"""The resolver that answers from a table."""

from __future__ import annotations

from forebay._network.resolver import NameResolver
from forebay._network.static_resolver import StaticResolver


def test_answers_from_the_table_and_numbers_from_themselves() -> None:
    resolver = StaticResolver({"kafka": ["10.0.0.1", "10.0.0.2"]})
    wakes: list[int] = []
    found = resolver.resolve("kafka", 9092, lambda: wakes.append(1))
    number = resolver.resolve("::1", 9093, lambda: wakes.append(2))
    missing = resolver.resolve("nowhere", 9092, lambda: wakes.append(3))
    assert [str(address) for address in found.addresses] == ["10.0.0.1:9092", "10.0.0.2:9092"]
    assert [str(address) for address in number.addresses] == ["[::1]:9093"]
    assert missing.done and "'nowhere'" in str(missing.error)
    assert (resolver.asked, wakes) == (["kafka", "::1", "nowhere"], [])


def test_held_answers_come_with_a_wake_up_and_the_table_of_that_moment() -> None:
    resolver: StaticResolver = StaticResolver({"kafka": ["10.0.0.1"]}, held=True)
    like: NameResolver = resolver
    wakes: list[str] = []
    found = like.resolve("kafka", 9092, lambda: wakes.append("woken"))
    assert not found.done
    resolver.hosts["kafka"] = ["10.0.0.9"]
    resolver.release()
    assert found.done and wakes == ["woken"]
    assert [str(address) for address in found.addresses] == ["10.0.0.9:9092"]


def test_canonical_names_and_the_end() -> None:
    resolver = StaticResolver(held=True)
    resolver.names["kafka"] = ["one.example", "two.example"]
    names = resolver.canonical("kafka", 9092, lambda: None)
    resolver.release()
    assert names.names == ("one.example", "two.example") and names.error is None
    assert resolver.canonical("10.0.0.1", 9092, lambda: None).names == ("10.0.0.1",)
    resolver.hosts["other"] = ["10.0.0.2", "10.0.0.3"]
    assert resolver.canonical("other", 9092, lambda: None).names == ("10.0.0.2", "10.0.0.3")
    assert resolver.canonical("nowhere", 9092, lambda: None).error is not None
    resolver.held = True
    late = resolver.canonical("kafka", 9092, lambda: None)
    resolver.close()
    assert late.done and late.error is not None and resolver.closed


def test_what_cannot_be_a_name_is_not_found_either() -> None:
    """A damaged answer may name a broker so; the system's resolver has an error for it, and no exception escapes."""
    resolver = StaticResolver()
    for host in ("a..b", ".1\0", "x" * 70 + "é"):
        resolution = resolver.resolve(host, 9092, lambda: None)
        assert resolution.done and "not in the table" in str(resolution.error)
