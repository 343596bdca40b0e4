"""The version, for the build, for brokers and for users: one place.

Not read from the installed package's metadata: the machinery for that takes 15 ms to import, and a clone that was
not installed has none.
"""

VERSION = "0.1.0"
