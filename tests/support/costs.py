"""Costs of nothing: all times of a simulation are those of its brokers and its wire."""

from __future__ import annotations

from forebay.tune import Costs

NO_COSTS = Costs(wake=0, turn=0, request=0, batch=0, record=0)
