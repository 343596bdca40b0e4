"""``_protocol.produce`` and ``produce_response`` in both forms, in one process: as imported, and run as Python."""

from __future__ import annotations

from types import ModuleType

from forebay._protocol import produce, produce_response
from tests.support.forms import as_python

REQUEST_FORMS: list[ModuleType] = [produce, as_python("_protocol.produce")]
RESPONSE_FORMS: list[ModuleType] = [produce_response, as_python("_protocol.produce_response")]
