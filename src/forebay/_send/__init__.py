"""The way of `send()` on the caller's thread."""
