"""Which form of the package the session runs, said once at its head."""

from __future__ import annotations

import platform

import pytest

import forebay


def pytest_report_header(config: pytest.Config) -> str:
    return f"forebay: {forebay.implementation}, {platform.python_implementation()} {platform.python_version()}"
