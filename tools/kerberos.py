"""A real MIT KDC for tests, without root: Debian's packages unpacked into ``.cache/kerberos`` of this repository.

:class:`Kdc` runs one on a free port of 127.0.0.1, with a realm and keys of its own.  What keeps the programs from being
had is one :class:`KdcUnavailable` that says so.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tools.ports import free_ports

CACHE = Path(__file__).parents[1] / ".cache" / "kerberos"
PACKAGES = ("krb5-kdc", "krb5-admin-server", "krb5-user", "libkadm5clnt-mit12", "libkadm5srv-mit12", "libss2")
#: From Debian 13 and Ubuntu 24.04 on their names end in t64.
LIBRARIES = ("libkdb5-10", "libgssrpc4", "libverto1", "libverto-libev1", "libev4")
REALM = "FOREBAY.TEST"
FETCH_S = 300.0
START_S = 20.0


class KdcUnavailable(RuntimeError):
    """Why no KDC can be run on this machine."""


def ensure_programs() -> Path:
    """The folder below which the programs are (``usr/sbin/krb5kdc``), fetched if need be."""
    folder = CACHE / "root"
    if folder.is_dir():
        return folder
    missing = [name for name in ("apt-get", "dpkg") if shutil.which(name) is None]
    if missing:
        raise KdcUnavailable(f"no KDC in {CACHE}, and no {' and '.join(missing)} to fetch Debian's packages with")
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="new-") as temporary:
        packages, root = Path(temporary) / "packages", Path(temporary) / "root"
        packages.mkdir()
        if not _download(packages, ()):
            # The machine has no lists of packages, or old ones; ours need no root.
            lists = [f"-oDir::State::lists={packages}/lists", f"-oDir::Cache={packages}/cache"]
            for name in ("lists/partial", "cache/archives/partial"):
                (packages / name).mkdir(parents=True, exist_ok=True)
            _run(["apt-get", *lists, "update"], packages)
            if not _download(packages, lists):
                raise KdcUnavailable("apt-get cannot download the packages of a KDC")
        for package in packages.glob("*.deb"):
            _run(["dpkg", "-x", str(package), str(root)], packages)
        try:
            root.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
            # Another run was quicker; its programs are the same.
    return folder


def _download(folder: Path, options: Sequence[str]) -> bool:
    for suffix in ("", "t64"):
        try:
            _run(["apt-get", *options, "download", *PACKAGES, *(name + suffix for name in LIBRARIES)], folder)
            return True
        except KdcUnavailable:
            pass
    return False


def _run(command: Sequence[str], folder: Path, environment: dict[str, str] | None = None) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=FETCH_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise KdcUnavailable(f"{' '.join(command[:2])} did not end") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise KdcUnavailable(f"{' '.join(command[:3])}: {said[-1] if said else done.returncode}")


class Kdc:
    """A KDC with the realm ``REALM``; started by ``with``.  ``stop`` and ``start`` may be called in between."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config = folder / "krb5.conf"
        """For clients: ``KRB5_CONFIG``, or Java's ``java.security.krb5.conf``."""
        self._root = ensure_programs()
        self._process: subprocess.Popen[bytes] | None = None
        [self._port] = free_ports(1)

    def __enter__(self) -> Self:
        libraries = self._root / "usr/lib"
        plugins = next(libraries.glob("*/krb5/plugins/kdb"))
        self.config.write_text(
            f"[libdefaults]\ndefault_realm = {REALM}\ndns_lookup_kdc = false\ndns_lookup_realm = false\nrdns = false\n"
            "dns_canonicalize_hostname = false\nudp_preference_limit = 1\n"
            f"[realms]\n{REALM} = {{\n  kdc = 127.0.0.1:{self._port}\n}}\n"
        )
        (self.folder / "kdc.conf").write_text(
            f"[kdcdefaults]\nkdc_listen = 127.0.0.1:{self._port}\nkdc_tcp_listen = 127.0.0.1:{self._port}\n"
            f"[realms]\n{REALM} = {{\n  database_name = {self.folder}/principal\n"
            f"  key_stash_file = {self.folder}/stash\n  acl_file = {self.folder}/acl\n  max_life = 1h\n}}\n"
            f"[dbmodules]\ndb_module_dir = {plugins}\n[logging]\nkdc = FILE:{self.folder}/kdc.log\n"
        )
        self._environment = {
            **os.environ,
            "KRB5_CONFIG": str(self.config),
            "KRB5_KDC_PROFILE": str(self.folder / "kdc.conf"),
            "LD_LIBRARY_PATH": ":".join(str(path) for path in libraries.glob("*")),
        }
        self._call("usr/sbin/kdb5_util", "create", "-s", "-P", "master", "-r", REALM)
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def keytab(self, principal: str, options: str = "") -> Path:
        """A new principal with a random key, and the file with its key; ``options`` are those of ``addprinc``."""
        path = self.folder / f"{principal.replace('/', '-')}.keytab"
        self.admin(f"addprinc -randkey {options} {principal}")
        self.admin(f"ktadd -k {path} {principal}")
        return path

    def admin(self, command: str) -> None:
        """A command of ``kadmin.local``, in the KDC's folder."""
        self._call("usr/sbin/kadmin.local", "-q", command)

    def ticket(self, principal: str, keytab: Path, cache: Path) -> None:
        """Puts a ticket into a cache, as a user's ``kinit`` does."""
        # Newer packages leave the plain name to the system's table of alternatives.
        name = next(name for name in ("kinit", "kinit.mit") if (self._root / "usr/bin" / name).exists())
        self._call(f"usr/bin/{name}", "-c", str(cache), "-k", "-t", str(keytab), principal)

    def start(self) -> None:
        """Begins to answer."""
        program = self._root / "usr/sbin/krb5kdc"
        self._process = subprocess.Popen([str(program), "-n"], env=self._environment, stdin=subprocess.DEVNULL)
        end = time.monotonic() + START_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self._port), timeout=1).close()
                return
            except OSError as error:
                if self._process.poll() is not None or time.monotonic() > end:
                    raise KdcUnavailable(f"krb5kdc did not start: status {self._process.poll()}") from error
            time.sleep(0.05)

    def stop(self) -> None:
        """Stops answering; the database stays."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _call(self, program: str, *arguments: str) -> None:
        _run([str(self._root / program), *arguments], self.folder, self._environment)
