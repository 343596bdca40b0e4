"""Each module of the package, where packages of extras are missing: it works, or names its extra."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import forebay
from forebay._runtime.extras import of_extra
from tests.support.pace import PROGRAM_S

PACKAGE = Path(forebay.__file__).parent
#: By the package that is imported: its extra, and a module that cannot do without it.
EXTRAS = {
    "click": ("cli", "cli.commands"),
    "rich": ("cli", ""),
    "pyspark": ("spark", "spark"),
    "prometheus_client": ("prometheus", "metrics.prometheus"),
    "opentelemetry": ("otel", "metrics.otel"),
    "opentelemetry.proto": ("telemetry", "_insight.telemetry.payload"),
    "fastavro": ("avro", ""),
    "google": ("protobuf", ""),
    "confluent_kafka": ("testing", ""),
    "cryptography": ("pkcs12", ""),
    "aws_msk_iam_sasl_signer": ("aws", ""),
    "pyarrow": ("spark", ""),
}
IMPORT = """
import importlib, sys
from importlib.abc import MetaPathFinder

missing, name = sys.argv[1:]

class Missing(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == missing or name.startswith(missing + "."):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
try:
    exec(f"from {name} import *")
except ModuleNotFoundError as error:
    print(error)
"""


def packages(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else []


def extra_of(package: str) -> str | None:
    found = [name for name in EXTRAS if f"{package}.".startswith(f"{name}.")]
    return EXTRAS[max(found, key=len)][0] if found else None


def test_what_a_module_imports_of_an_extra_at_once_names_it() -> None:
    """Under ``spark`` the package itself does it for all of its modules."""
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).as_posix()
        for node in ast.parse(path.read_text()).body:
            bare = [] if name.startswith("spark/") else [found for found in packages(node) if extra_of(found)]
            assert not bare, f"{name} imports {bare} without of_extra"
            if isinstance(node, ast.With) and "of_extra" in ast.unparse(node.items[0]):
                extras = {extra for each in node.body for found in packages(each) if (extra := extra_of(found))}
                assert not extras or ast.unparse(node.items[0]) == f"of_extra(__name__, {extras.pop()!r})", name


@pytest.mark.parametrize("package", [package for package, (_, module) in EXTRAS.items() if module])
def test_where_it_is_missing_the_error_names_the_extra(package: str) -> None:
    extra, module = EXTRAS[package]
    command = [sys.executable, "-c", IMPORT, package, f"forebay.{module}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PROGRAM_S)
    words = f"forebay.{module} needs the package {package}"
    assert done.stdout.startswith(words) and done.stdout.endswith(f"pip install 'forebay[{extra}]'\n"), done.stdout


def test_a_fault_of_our_own_is_none_of_an_extra() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'forebay.nowhere'$"), of_extra("x", "cli"):
        importlib.import_module("forebay.nowhere")
