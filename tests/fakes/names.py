"""Text that the wire cannot carry, and names that no topic has: what every call that takes a name is tried with."""

from __future__ import annotations

LONE_SURROGATES = ("\ud800", "a\udcff", "\udfff-b", "\ude00\ud83d", "\ud83d\ude00")
"""Halves of pairs, alone and in the wrong order; two characters that Python does not take for one either."""
TOO_LONG = ("x" * 32_768, "ü" * 16_384, "€" * 10_923, "🙂" * 8_192, "y" * 40_000)
"""More than 32,767 bytes in UTF-8, by characters of one to four bytes."""
LONGEST = ("x" * 32_767, "ü" * 16_383, "€" * 10_922, "🙂" * 8_191)

FORBIDDEN_TOPICS = (
    "",
    ".",
    "..",
    "a b",
    "a/b",
    "a:b",
    "a,b",
    "a\n",
    "\0",
    "a\tb",
    "tööp",
    "\u0663",  # a digit of Arabic
    "\uff41",  # a letter a of full width
    "z" * 250,
    "ü" * 130,
    *LONE_SURROGATES,
    *TOO_LONG,
)
ALLOWED_TOPICS = ("a", "A.b_c-9", "...", "_", "-", "z" * 249)
