"""The two variables that bound what options may name."""

from __future__ import annotations

from pathlib import Path

import pytest

from forebay._runtime.allowed import PATHS, URLS, path_refusal, url_refusal
from forebay._runtime.files import read_small


def test_without_the_variables_there_is_no_limit() -> None:
    assert path_refusal("/etc/passwd") is url_refusal("http://169.254.169.254/") is url_refusal("file:///x") is None


@pytest.mark.parametrize("empty", ["", " ", ","])
def test_set_and_empty_nothing_is_allowed(monkeypatch: pytest.MonkeyPatch, empty: str) -> None:
    monkeypatch.setenv(PATHS, empty)
    monkeypatch.setenv(URLS, empty)
    assert path_refusal("/etc/passwd") == f"it is not among the paths of {PATHS}"
    assert url_refusal("https://login.example/") == f"it is not among the URLs of {URLS}"


def test_a_folder_allows_what_is_in_it_and_no_name_that_begins_like_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    inside, beside = tmp_path / "keys", tmp_path / "keys-of-others"
    inside.mkdir()
    beside.mkdir()
    (inside / "a.pem").write_text("a")
    (beside / "b.pem").write_text("b")
    (inside / "link.pem").symlink_to(beside / "b.pem")
    (inside / "folder").symlink_to(beside)
    (tmp_path / "way").symlink_to(inside)
    monkeypatch.setenv(PATHS, f"{tmp_path}/way/ , {tmp_path}/one.pem")
    monkeypatch.chdir(tmp_path)
    for allowed in ("keys", "keys/a.pem", "way/a.pem", "keys/../way/a.pem", f"{tmp_path}/one.pem", "keys/not-there"):
        assert path_refusal(allowed) is None, allowed
    for refused in (
        *("keys/link.pem", "keys/folder/b.pem", "keys/../keys-of-others/b.pem", str(beside), "/", "", "."),
        *(f"{tmp_path}/one.pem2", "keys/a\0.pem", "way/../way/link.pem"),
    ):
        assert path_refusal(refused) is not None, refused


def test_a_root_that_is_not_absolute_allows_nothing_and_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PATHS, "keys,/etc")
    assert path_refusal("/etc/hosts") == f"{PATHS} names 'keys', which is no absolute path, so nothing is allowed"
    monkeypatch.setenv(PATHS, "/")
    assert path_refusal("/etc/hosts") is None


def test_the_reader_of_files_is_bound(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("text")
    monkeypatch.setenv(PATHS, "/nowhere")
    with pytest.raises(PermissionError, match=PATHS):
        read_small(str(tmp_path / "a"), 100)


LIMIT = "https://login.example/realms/kafka, HTTP://LOCAL.example:8080, https://[::1]:9443/, file:///run/tokens"


@pytest.mark.parametrize(
    "url",
    [
        "https://login.example/realms/kafka",
        "https://login.example/realms/kafka/",
        "https://LOGIN.example:443/realms/kafka/token?x=1",
        "https://login.example/realms/kaf%6Ba/token",
        "http://local.example:8080",
        "http://local.example:8080/any/path",
        "https://[::1]:9443/token",
        "file:///run/tokens/a",
        "file://localhost/run/tokens/a",
    ],
)
def test_urls_that_are_allowed(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv(URLS, LIMIT)
    assert url_refusal(url) is None


@pytest.mark.parametrize(
    "url",
    [
        "http://login.example/realms/kafka",
        "https://login.example:8443/realms/kafka",
        "https://login.example/realms/kafka2",
        "https://login.example/realms/",
        "https://login.example/realms/kafka/../master",
        "https://login.example/realms/kafka/%2e%2e/master",
        "https://login.example/realms/kafka/%252e%252e/master",
        "https://login.example/realms/kafka/..%2fmaster",
        "https://login.example/realms/kafka/..\\master",
        "https://login.example.evil.example/realms/kafka",
        "https://login.example@evil.example/realms/kafka",
        "https://evil.example#@login.example/realms/kafka",
        "https://evil.example\\@login.example/realms/kafka",
        "https://login.example\t.evil.example/realms/kafka",
        "https://login.example//realms/kafka",
        "http://local.example/",
        "http://local.example:80800/",
        "http://local.example:x/",
        "//local.example:8080",
        "local.example:8080",
        "ftp://local.example:8080/",
        "file:///run/tokens/../other",
        "file:///etc/passwd",
        "FILE:///etc/passwd",
        "",
    ],
)
def test_urls_that_are_refused(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv(URLS, LIMIT)
    assert url_refusal(url) == f"it is not among the URLs of {URLS}"


@pytest.mark.parametrize("entry", ["login.example", "https://u:secret@login.example", "https://x/?a", "https://x/../y"])
def test_an_entry_that_is_no_url_allows_nothing_and_is_not_shown(monkeypatch: pytest.MonkeyPatch, entry: str) -> None:
    monkeypatch.setenv(URLS, f"https://good.example,{entry}")
    refusal = url_refusal("https://good.example/")
    assert refusal is not None and "no URL" in refusal and "secret" not in refusal


def test_a_file_url_is_bound_as_a_path_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "to").symlink_to("/etc")
    monkeypatch.setenv(PATHS, str(tmp_path))
    assert url_refusal(f"file://{tmp_path}/a%20b") is None
    for refused in ("file:///etc/passwd", f"file://{tmp_path}/to/passwd", f"File:{tmp_path}/../x"):
        assert url_refusal(refused) == f"it is not among the paths of {PATHS}", refused
    monkeypatch.setenv(URLS, "https://x.example")
    assert url_refusal(f"file://{tmp_path}/a") == f"it is not among the URLs of {URLS}"
