"""The transform of ``weather.toml``: hours become days."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def days(hours: DataFrame) -> DataFrame:
    """One row for each airport and day, once the watermark has passed it."""
    return (
        hours.withWatermark("time_hour", "1 day")
        .groupBy("origin", F.window("time_hour", "1 day").alias("window"))
        .agg(
            F.count("*").alias("hours"),
            F.round(F.avg("temp"), 2).alias("temp"),
            F.max("wind_gust").alias("gust"),
            F.round(F.sum("precip"), 2).alias("precip"),
        )
        .select("origin", F.col("window.start").alias("day"), "hours", "temp", "gust", "precip")
    )
