from __future__ import annotations

import importlib
import pkgutil

import pytest
from kio.schema.index import api_key_map

from forebay._protocol import versions
from forebay._protocol.versions import ApiKey, api_name, choose, is_flexible
from forebay.errors import UnsupportedVersionError
from tests.support.forms import differences

from .kio_peer import schema


def test_compiled_code_has_the_same_numbers() -> None:
    assert differences(versions) == {}


def published(api: ApiKey) -> list[int]:
    """The versions of ``api`` that kio knows."""
    package = importlib.import_module(f"kio.schema.{api_key_map[api]}")
    return sorted(int(found.name[1:]) for found in pkgutil.iter_modules(package.__path__) if found.name[0] == "v")


@pytest.mark.parametrize("api", list(ApiKey), ids=lambda api: api.name)
def test_names_and_headers_are_those_of_kafkas_definitions(api: ApiKey) -> None:
    assert api_key_map[api] == api.name.lower()
    for version in published(api):
        for side in ("request", "response"):
            module = schema(api_key_map[api], version, side)
            entity = getattr(module, api_name(api) + side.capitalize())
            assert entity.__flexible__ == is_flexible(api, version)
            ours = getattr(versions, f"{side}_header_version")(api, version)
            assert entity.__header_schema__.__version__ == ours, (api, version, side)


def test_the_answer_to_api_versions_never_has_tags_in_its_header() -> None:
    assert [versions.request_header_version(ApiKey.API_VERSIONS, version) for version in range(5)] == [1, 1, 1, 2, 2]
    assert [versions.response_header_version(ApiKey.API_VERSIONS, version) for version in range(5)] == [0] * 5


def test_supported_ranges_are_known_to_kafka_and_without_gaps() -> None:
    assert versions.SUPPORTED[ApiKey.PRODUCE] == (0, 13)
    for api, (oldest, newest) in versions.SUPPORTED.items():
        # Kafka 4 dropped Produce v0 to v2 from its definitions; they are tested by golden bytes.
        start = 3 if api == ApiKey.PRODUCE else oldest
        assert set(range(start, newest + 1)) <= set(published(ApiKey(api)))


@pytest.mark.parametrize(("ours", "chosen"), [((0, 1), 1), ((1, 2), 2), ((2, 3), 3), ((3, 4), 3)])
def test_choose_takes_the_newest_both_speak(ours: tuple[int, int], chosen: int) -> None:
    """M NodeApiVersionsTest: latestUsableVersion against a broker with Produce 1 to 3."""
    assert choose(ApiKey.PRODUCE, {ApiKey.PRODUCE: (1, 3)}, *ours) == chosen


@pytest.mark.parametrize(("ours", "theirs"), [((4, 5), (1, 3)), ((0, 0), (1, 3)), ((0, 12), (13, 20))])
def test_nothing_in_common_names_both_ranges(ours: tuple[int, int], theirs: tuple[int, int]) -> None:
    """M NodeApiVersionsTest: disjoint ranges are an UnsupportedVersionError."""
    with pytest.raises(UnsupportedVersionError) as caught:
        choose(ApiKey.PRODUCE, {ApiKey.PRODUCE: theirs}, *ours)
    assert f"Produce versions {theirs[0]} to {theirs[1]}" in str(caught.value)
    assert f"versions {ours[0]} to {ours[1]}" in str(caught.value)


def test_an_api_the_broker_does_not_list_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedVersionError, match=r"does not support InitProducerId; versions 0 to 6"):
        choose(ApiKey.INIT_PRODUCER_ID, {ApiKey.PRODUCE: (0, 12)})


def test_without_limits_the_supported_range_counts() -> None:
    assert choose(ApiKey.PRODUCE, {ApiKey.PRODUCE: (0, 99)}) == 13
    assert choose(ApiKey.METADATA, {ApiKey.METADATA: (5, 7)}) == 7
    assert choose(ApiKey.METADATA, {ApiKey.METADATA: (0, 13)}, max_version=3) == 3


def test_an_api_without_layouts_of_ours_can_be_chosen_with_limits() -> None:
    assert choose(999, {999: (0, 1)}, 0, 9) == 1
    with pytest.raises(UnsupportedVersionError):
        choose(999, {999: (0, 1)})


def test_require_refuses_what_has_no_layout() -> None:
    versions.require(ApiKey.METADATA, 13)
    for version in (-1, 14):
        with pytest.raises(UnsupportedVersionError, match=f"Metadata v{version} is unknown here, only v0 to v13"):
            versions.require(ApiKey.METADATA, version)


def test_unknown_apis_have_a_name_too() -> None:
    assert api_name(999) == "API 999"
    assert api_name(0) == "Produce"
