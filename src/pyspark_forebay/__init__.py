"""Found by Spark by its name: makes ``df.write.format("forebay")`` work without a call to ``register``."""

from forebay.spark import ForebayDataSource as DefaultSource

__all__ = ["DefaultSource"]
