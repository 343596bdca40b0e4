"""StaticResolver under the name that tests import."""

from forebay._network.static_resolver import StaticResolver

__all__ = ["StaticResolver"]
