"""Java's properties files."""

from __future__ import annotations

import pytest

from forebay.config._properties import EscapeError, logical_lines, properties

#: What java.util.Properties of Java 17 makes of a text; None: it refuses it.  The integration test of such files asks
#: Java again.
OF_JAVA: dict[str, dict[str, str] | None] = {
    "": {},
    "a": {"a": ""},
    "a=1": {"a": "1"},
    "a:1": {"a": "1"},
    "a 1": {"a": "1"},
    "a\t1": {"a": "1"},
    "a\x0c1": {"a": "1"},
    " a = 1 ": {"a": "1 "},
    "a==1": {"a": "=1"},
    "a=:1": {"a": ":1"},
    "a = = 1": {"a": "= 1"},
    "a  :  : 1": {"a": ": 1"},
    "=1": {"": "1"},
    ":1": {"": "1"},
    "=": {"": ""},
    "a=1\nb=2": {"a": "1", "b": "2"},
    "a=1\rb=2": {"a": "1", "b": "2"},
    "a=1\r\nb=2": {"a": "1", "b": "2"},
    "a=1\n\r\nb=2": {"a": "1", "b": "2"},
    "a=1\na=2": {"a": "2"},
    "#a=1": {},
    "!a=1": {},
    "  # a": {},
    "a=#1": {"a": "#1"},
    "a#=1": {"a#": "1"},
    "# a\\\nb=1": {"b": "1"},
    "a=1\\\n  2": {"a": "12"},
    "a=1\\\r\n\t2": {"a": "12"},
    "a=1\\\r2": {"a": "12"},
    "a=1\\\\\n2": {"2": "", "a": "1\\"},
    "a=1\\\\\\\n2": {"a": "1\\2"},
    "a=1\\": {"a": "1"},
    "a=1\\\n": {"a": "1"},
    "a=1\\\n\n2": {"2": "", "a": "1"},
    "a\\\n=1": {"a": "1"},
    "a=\\\n#1": {"a": "#1"},
    "\\\n#a\nb": {"b": ""},
    "\\": {"": ""},
    "\\\n": {"": ""},
    "\\\r": {"": ""},
    "\\\r\n": {},
    "a\n\\": {"": "", "a": ""},
    "\\\n\\": {"": ""},
    "a\\=b=1": {"a=b": "1"},
    "a\\:b=1": {"a:b": "1"},
    "a\\ b=1": {"a b": "1"},
    "a\\\\=1": {"a\\": "1"},
    "\\#a=1": {"#a": "1"},
    "\\!a": {"!a": ""},
    "a=\\n\\t\\r\\f": {"a": "\n\t\r\x0c"},
    "a=\\b\\x\\0\\\"\\'": {"a": "bx0\"'"},
    "a=\\q": {"a": "q"},
    "a=c:\\temp\\new": {"a": "c:\temp\new"},
    "a=\\u0041": {"a": "A"},
    "\\u0041=1": {"A": "1"},
    "a=\\u00e9\\u20ac": {"a": "\xe9\u20ac"},
    "a=\\ud83d\\ude00": {"a": "\U0001f600"},
    "a=\\uD83D\\uDE00!": {"a": "\U0001f600!"},
    "a=\\ude00\\ud83d": {"a": "\ude00\ud83d"},
    "a=\\ud83d": {"a": "\ud83d"},
    "a=\\ud83dx\\ude00": {"a": "\ud83dx\ude00"},
    "a=\\ud83d\\\n\\ude00": {"a": "\U0001f600"},
    "a=\\u12": None,
    "a=\\u": None,
    "a=\\u123": None,
    "a=\\u12g4": None,
    "a=\\u 041": None,
    "a=\\U0041": {"a": "U0041"},
    "a=\\uu0041": None,
    "a=\\u+041": None,
    "a=\\u\uff10\uff10\uff14\uff11": None,
    "a=\\u00\\\n41": {"a": "A"},
    "a=\\\\u12": {"a": "\\u12"},
    "\\u12=1": None,
    "#\\u12": {},
    "a=\\u003d1": {"a": "=1"},
    "a\\u003db=1": {"a=b": "1"},
    "a\\u0020b=1": {"a b": "1"},
    "a=\\u005cn": {"a": "\\n"},
    "a=\\u000a1": {"a": "\n1"},
    "a\\u000a=1": {"a\n": "1"},
    "\\u0023a": {"#a": ""},
    "a\x0bb": {"a\x0bb": ""},
    "a\x0b=1": {"a\x0b": "1"},
    "\x0ba=1": {"\x0ba": "1"},
    "a\xa0b": {"a\xa0b": ""},
    "a\u2028b=1": {"a\u2028b": "1"},
    "a\x85b=1": {"a\x85b": "1"},
    "a\x1cb": {"a\x1cb": ""},
    "a\x00b=1": {"a\x00b": "1"},
    "\ufeffa=1": {"\ufeffa": "1"},
    "\xe9=\xfc": {"\xe9": "\xfc"},
    "a=\U0001f600": {"a": "\U0001f600"},
    "a=1\x0c": {"a": "1\x0c"},
    "\x0ca": {"a": ""},
    "a=1\\\n\x0b2": {"a": "1\x0b2"},
    "a=1\\\n\x0c2": {"a": "12"},
    "a\\\n b": {"ab": ""},
    "a\\\n =1": {"a": "1"},
    "a \\\n = 1": {"a": "1"},
    "a=1 \\\n 2": {"a": "1 2"},
    "a:=1": {"a": "=1"},
    "a=:=1": {"a": ":=1"},
    "a = \\ 1": {"a": " 1"},
    "a=\\\n": {"a": ""},
    "a=\\\n\nb": {"a": "", "b": ""},
    "a\\\n\\\n=1": {"a": "1"},
}


def read(text: str) -> dict[str, str] | None:
    try:
        return {name: value for _, name, value in properties(text)}
    except EscapeError:
        return None


@pytest.mark.parametrize("text", OF_JAVA, ids=ascii)
def test_as_java_reads_it(text: str) -> None:
    assert read(text) == OF_JAVA[text]


def test_logical_lines_keep_the_number_they_begin_on() -> None:
    assert list(logical_lines("a\\\n  b\n#x\\\nc\\\\\nd\\")) == [(1, "ab"), (4, "c\\\\"), (5, "d")]


def test_names_and_values() -> None:
    found = list(properties("a=1\nb : \\u0041\\\n  c\n= x\nd"))
    assert found == [(1, "a", "1"), (2, "b", "Ac"), (4, "", "x"), (5, "d", "")]


def test_what_java_refuses_names_the_line_and_shows_nothing_of_it() -> None:
    with pytest.raises(EscapeError) as refused:
        list(properties("a=1\n\npassword=\\\n hush\\u12"))
    assert refused.value.number == 3 and "hush" not in str(refused.value)
