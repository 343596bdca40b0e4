"""Which form of the package runs: its compiled modules, or the same sources as Python.

``FOREBAY_INTERPRETED=1`` asks for the sources, also where compiled modules lie beside them.  So the tests run both
forms, and a debugger steps through the hot path.  Without it, compiled modules that are missing are an ImportError that
says how to build them: nobody should run many times slower without having asked for it.  The error is raised by the
first hot module, not by ``import forebay``: Spark imports the package where no producer is needed, and one failed
import there disables all other data sources.
"""

from __future__ import annotations

# Not `from` it: in Python 3.14 that imports `warnings`, which takes as long as all that is imported here.
import importlib
import importlib.machinery as machinery
import os
import sys

# Not typing's: it takes as long to import as the rest of the package's first step.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, MutableSequence, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Literal

    Form = Literal["compiled", "interpreted", "missing"]

VARIABLE = "FOREBAY_INTERPRETED"
WITNESS = "_delivery.future"
NEEDED = ("_delivery", "producer", "model._arguments", "model._gate", "model._metadata")
"""What a use of a producer imports first; the rest, such as options, works without compiled modules."""
"""The module that is looked for; the build makes all or none.  Asking for each would cost every start.

What stands in its folder is what every producer imports first.
"""


class SourceOnlyFinder:
    """Finds a package's modules by their ``.py`` alone; stands first on ``sys.meta_path``."""

    def __init__(self, package: str) -> None:
        self._prefix = f"{package}."
        self._finders: dict[str, machinery.FileFinder] = {}

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """None for modules of other packages, and where there is no source."""
        if not name.startswith(self._prefix) or path is None:
            return None
        by_source = (machinery.SourceFileLoader, machinery.SOURCE_SUFFIXES)
        for folder in path:
            finder = self._finders.setdefault(folder, machinery.FileFinder(folder, by_source))
            if (found := finder.find_spec(name)) is not None:
                return found
        return None

    def invalidate_caches(self) -> None:
        """Part of the protocol of finders: new files are seen from now on."""
        self._finders.clear()


class CimportFinder:
    """Finds ``cython.cimports.X`` as the module X itself, for a package whose modules run as Python."""

    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(self, name: str, path: object, target: ModuleType | None = None) -> ModuleSpec | None:
        """None for cimports from other packages."""
        found = name.removeprefix("cython.cimports.")
        if found == name or found.partition(".")[0] != self._package:
            return None
        return machinery.ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]  # create and exec are enough

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module; the import system is about to give it another spec."""
        module = importlib.import_module(spec.name.removeprefix("cython.cimports."))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """It has run already; gives it its own spec back."""
        module.__spec__ = module.__spec__.loader_state  # type: ignore[union-attr]


class MissingModules:
    """Refuses what every use of a producer needs, with the way out; stands first on ``sys.meta_path``."""

    def __init__(self, names: Collection[str], message: str) -> None:
        self._names = names
        self._message = message

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """None for all other modules.

        Raises:
            ImportError: for these.
        """
        if name in self._names:
            raise ImportError(self._message, name=name)
        return None


def serve_cimports(package: str, meta_path: MutableSequence[object]) -> None:
    """Makes ``cython.cimports.X`` the module X for modules of ``package`` that run as Python."""
    importlib.import_module("cython")
    cimports = sys.modules["cython.cimports"]
    # The import system asks a parent for its spec, and this one is no real module.
    cimports.__spec__ = machinery.ModuleSpec(cimports.__name__, None, is_package=True)
    # Before the finder by path, which would load a second module from the package's folder.
    meta_path.insert(0, CimportFinder(package))


def choose(
    package: str,
    folder: str | os.PathLike[str],
    *,
    interpreted: bool,
    executable: str,
    meta_path: MutableSequence[object],
) -> Form:
    """Decides once, before any other module of ``package`` is imported; may put a finder onto ``meta_path``.

    Raises:
        ImportError: the interpreted form was asked for, and Cython, whose pure-Python mode it runs on, is missing.
    """
    if interpreted:
        from importlib.util import find_spec

        if find_spec("cython") is None:
            raise ImportError(f"{VARIABLE}=1 runs {package} on Cython's pure-Python mode: pip install 'Cython>=3.3'")
        meta_path.insert(0, SourceOnlyFinder(package))
        serve_cimports(package, meta_path)
        return "interpreted"
    if any(
        os.path.exists(os.path.join(folder, f"{WITNESS.replace('.', os.sep)}{suffix}"))
        for suffix in machinery.EXTENSION_SUFFIXES
    ):
        return "compiled"
    message = (
        f"{package} in {folder} is not compiled for {executable}. In a clone run `make build`; elsewhere reinstall it "
        f"for this Python with `{executable} -m pip install --force-reinstall {package}` (needs a C compiler). "
        f"{VARIABLE}=1 runs the slow interpreted form, for debugging."
    )
    meta_path.insert(0, MissingModules([f"{package}.{name}" for name in NEEDED], message))
    return "missing"


implementation: Form = choose(
    __name__.rpartition(".")[0],
    os.path.dirname(os.path.abspath(__file__)),
    interpreted=os.environ.get(VARIABLE) == "1",
    executable=sys.executable,
    meta_path=sys.meta_path,  # type: ignore[arg-type]  # typeshed wants a class of its own there
)
"""The form of the package that runs; decided by the import of this module, the package's first."""
