# SPDX-License-Identifier: Apache-2.0
"""Plug-ins: your own shared libraries, built with the headers of ``include_dir()``.

A library is loaded once per process and stays loaded. Its transforms are classes like those of
``headrace.transforms``: they have a signature and a docstring, can be pickled, and can be written
to configurations. Its codecs read images wherever Headrace finds them, paths in its storages work
like local paths, its samplers are classes like those of ``headrace.sampling``, and its formats are
recognized by ``headrace.open``.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from headrace import _core, sampling
from headrace import transforms as T
from headrace.errors import declare, nearest, warn

GROUP = "headrace.plugins"
_SECONDS = 60  # time limit of the process that tests whether a plug-in crashes

_NOT_FOUND = declare(
    "HR0579",
    "config",
    "plug-in not found",
    "A name without a / that does not end in .so refers to an entry point in the group "
    "headrace.plugins of an installed distribution, otherwise to a file in the current folder. "
    "The entry point refers to the path of the shared library, or to a function without "
    "arguments that returns it. If two distributions have an entry point of this name, uninstall "
    "one of them, or give the path.",
)
_CRASHED = declare(
    "HR0580",
    "config",
    "plug-in crashes when it is loaded",
    "With check=True a plug-in is first loaded in a separate process, which crashed, or did not "
    "end within a minute. The cause is in its constructors or in headrace_plugin_table, or the "
    "file is damaged.",
)


class Plugin:
    """A loaded plug-in. Its transforms are its attributes: ``mine.Vignette(strength=0.3)``.

    Attributes:
        name, version, help: as declared by the plug-in.
        path: absolute path of the library.
        fingerprint: hash of the file's contents.
        transforms: the names of its transforms.
        codecs: the names of its image codecs.
        storages: the schemes of its storages, such as "mine" for mine:// paths.
        samplers: the names of its samplers, which are also attributes: ``mine.strided()``.
        formats: the names of its formats, which are also attributes: ``mine.rows(path)``.
    """

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self.name: str = facts["name"]
        self.version: str = facts["version"]
        self.help: str = facts["help"]
        self.path: str = facts["path"]
        self.fingerprint: str = facts["fingerprint"]
        self.transforms: tuple[str, ...] = tuple(facts["transforms"])
        self.codecs: tuple[str, ...] = tuple(facts["codecs"])
        self.storages: tuple[str, ...] = tuple(facts["storages"])
        self.samplers: tuple[str, ...] = tuple(facts["samplers"])
        self.formats: tuple[str, ...] = tuple(facts["formats"])

    def __getattr__(self, name: str) -> Any:
        transforms = self.__dict__.get("transforms", ())
        samplers = self.__dict__.get("samplers", ())
        if name in transforms or name in samplers:
            return getattr(T if name in transforms else sampling, name)
        formats = self.__dict__.get("formats", ())
        if name in formats:
            from headrace.formats import function_of  # late

            return function_of(name)
        names = (*transforms, *samplers, *formats)
        near = nearest(name, names)
        raise AttributeError(
            f"the plug-in {self.__dict__.get('name')} has no part {name!r}; "
            + (f"did you mean {near!r}?" if near else f"it has {', '.join(names) or 'none'}")
        )

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.transforms, *self.samplers, *self.formats})

    def __repr__(self) -> str:
        schemes = (f"{scheme}://" for scheme in self.storages)
        parts = (*self.transforms, *self.codecs, *schemes, *self.samplers, *self.formats)
        return f"<plug-in {self.name} {self.version}: {', '.join(parts)}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plugin) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (vars(self),)


def _again(facts: dict[str, Any]) -> Plugin:
    T.require(facts, load=True)
    return Plugin(facts)


def load_plugin(library: str | os.PathLike[str], *, check: bool = False) -> Plugin:
    """Loads a plug-in: a shared library that was built with the headers of ``include_dir()``.

    Args:
        library: path of the library, or the name of an entry point in the group
            ``headrace.plugins`` of an installed distribution. A name without a ``/`` that does not
            end in ``.so`` refers to a file only if no distribution has such an entry point.
        check: from now on, check every call, at several times its cost: that it does not write
            beyond its output, leave parts of it unwritten, change its input, or return different
            results for the same input. A crash then reports the transform and the record.

    Returns:
        The plug-in; the same object if a library with these contents is already loaded.

    Raises:
        hr.ConfigError: HR0570 to HR0580 for a file that is not a plug-in, or cannot be loaded.
    """
    path = _path_of(library)
    if check:
        _try_elsewhere(path)
    return Plugin(_core.load_plugin(path, bool(check)))


def include_dir() -> str:
    """The folder of ``headrace/plugin.h`` and ``headrace/plugin.hpp``: for ``cc -I``."""
    return str(Path(__file__).parent / "include")


def installed() -> dict[str, str]:
    """Plug-ins that ``load_plugin()`` finds by name, and the distributions that have them."""
    out = {}
    for point in metadata.entry_points(group=GROUP):
        out[point.name] = point.dist.name if point.dist else point.value
    return out


def _path_of(library: str | os.PathLike[str]) -> str:
    path = os.fsdecode(os.fspath(library))
    if isinstance(library, os.PathLike) or os.sep in path or path.endswith(".so"):
        return os.path.abspath(path)
    points = {
        (point.dist.name if point.dist else "", point.value): point
        for point in metadata.entry_points(group=GROUP, name=path)
    }
    if len(points) > 1:
        raise _NOT_FOUND.error(
            f"{path!r} is a plug-in of {' and of '.join(sorted(name for name, _ in points))}",
            hint="uninstall one of them, or give the path of the library",
        )
    if not points and os.path.isfile(path):
        return os.path.abspath(path)
    if not points:
        names = sorted(installed())
        raise _NOT_FOUND.error(
            f"{path!r} is neither a file nor an installed plug-in",
            hint=f"installed: {', '.join(names)}" if names else "pass the path of the library",
        )
    found: Any = next(iter(points.values())).load()
    return os.path.abspath(os.fsdecode(os.fspath(found() if callable(found) else found)))


def _try_elsewhere(path: str) -> None:
    """Raises ConfigError HR0580 if a process that loads it crashes, or does not end in time. Errors
    of loading are ignored here, since they will occur in this process, too. Warns if no such
    process can be started.
    """
    code = (
        "import sys; from headrace import _core\n"
        "print('ready', flush=True)\n"
        "try: _core.load_plugin(sys.argv[1], False)\n"
        "except Exception: pass"
    )
    if not sys.executable:
        warn(f"{path} is not tested in another process first: sys.executable is empty")
        return
    status: int | None = None
    try:
        ended = subprocess.run(
            [sys.executable, "-c", code, path],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_SECONDS,
        )
        status, out, err = ended.returncode, ended.stdout, ended.stderr
    except subprocess.TimeoutExpired as expired:
        out, err = expired.stdout or b"", expired.stderr or b""
    except OSError as error:
        out, err = b"", str(error).encode()
    if status == 0:
        return
    said = err.decode(errors="replace").strip().splitlines()
    if not out.startswith(b"ready"):
        warn(
            f"{path} is not tested in another process first: {sys.executable} cannot import "
            "headrace" + (f": {said[-1]}" if said else "")
        )
        return
    if status is None:
        raise _CRASHED.error(
            f"a process that loads {path} has not ended after {_SECONDS} seconds",
            hint="its constructors or headrace_plugin_table may be blocked",
        )
    number = -status
    named = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    how = f"by {named}" if number > 0 else f"with exit status {status}"
    raise _CRASHED.error(
        f"a process that loaded {path} ended {how}" + (f": {said[-1]}" if said else ""),
        hint="a debugger shows where: gdb --args python -c 'import ctypes; ctypes.CDLL(...)'",
    )
