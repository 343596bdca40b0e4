"""A module's source run as Python, beside the compiled module that the tests imported."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest

import forebay
from forebay._interpreted import serve_cimports

CIMPORTS = "cython.cimports.forebay"


def as_python(name: str, instead: Mapping[str, ModuleType] | None = None) -> ModuleType:
    """``forebay.<name>`` run as Python, as a module of its own that imports the others as they are.

    Args:
        instead: modules that it gets in place of others, by their whole names.
    """
    package, _, stem = name.rpartition(".")
    path = Path(forebay.__path__[0], *name.split(".")).with_suffix(".py")
    spec = importlib.util.spec_from_file_location(f"forebay.{package}.interpreted_{stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = {known: sys.modules.get(known) for known in instead or {}}
    finders = list(sys.meta_path)
    sys.modules[spec.name] = module
    sys.modules.update(instead or {})
    forget_cimports()
    serve_cimports("forebay", sys.meta_path)  # type: ignore[arg-type]  # typeshed wants a class of its own there
    try:
        spec.loader.exec_module(module)
    finally:
        sys.meta_path[:] = finders
        forget_cimports()
        for known, old in before.items():
            if old is not None:
                sys.modules[known] = old
                parent, _, last = known.rpartition(".")
                setattr(sys.modules[parent], last, old)  # an import sets it, too
    return module


def forget_cimports() -> None:
    """They are other names of modules, which may be others for the next one; not in the interpreted form's process."""
    if forebay.implementation == "compiled":
        for known in [known for known in sys.modules if known.startswith(CIMPORTS)]:
            del sys.modules[known]


def declarations_of(module: ModuleType) -> str:
    """The text of the ``.pxd`` beside ``module``.  A wheel has none of them."""
    if not any(Path(forebay.__path__[0]).rglob("*.pxd")):
        pytest.skip("the package was installed from a wheel, without the declarations of compiled modules")
    return Path(str(module.__file__)).with_suffix(".pxd").read_text(encoding="utf-8")


def declared_enums(module: ModuleType) -> dict[str, int]:
    """The constants that compiled code has from the ``.pxd`` beside ``module``, by name."""
    rows = re.findall(r"^    ([A-Z][A-Z0-9_]*) = (-?\d+)\b", declarations_of(module), re.M)
    return {name: int(value) for name, value in rows}


def differences(module: ModuleType) -> dict[str, tuple[int, object]]:
    """Constants that are not the same in ``module`` and in the ``.pxd`` beside it; at least one is declared there."""
    declared = declared_enums(module)
    assert declared, f"{module.__name__} declares no constants for compiled code"
    return {
        name: (value, getattr(module, name, None))
        for name, value in declared.items()
        if getattr(module, name, None) != value
    }
