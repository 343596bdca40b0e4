"""Tests of whole producers against brokers."""

import pytest

# Its assertions are those of the tests that call it.
pytest.register_assert_rewrite("tests.integration.workload")
