# SPDX-License-Identifier: Apache-2.0
"""Information for bug reports: versions, processor, limits, libraries, devices.

Only reads small files, and queries CUDA's driver for its devices. Packages are
looked up by their metadata, not imported. Of the environment, only the variables of Headrace,
OpenMP, CUDA, the allocator and the launcher are reported: others may hold secrets. For object
stores and proxies, only the names are reported.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import platform
import re
import resource
import shutil
import sys
import sysconfig
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

from headrace import _core
from headrace.insight.measure import instructions, machine

# Packages whose versions have mattered in bug reports: array types, trainers, readers, references
# in tests.
PACKAGES = (
    *("numpy", "torch", "torchvision", "torchaudio", "tensorflow", "keras", "jax", "paddlepaddle"),
    *("mxnet", "lightning", "accelerate", "transformers", "timm", "ultralytics", "albumentations"),
    *("opencv-python", "opencv-python-headless", "pillow", "pyarrow", "datasets", "webdataset"),
    *("ray", "grain", "torchtitan", "h5py", "lmdb", "pandas", "soundfile", "pycocotools"),
    *("fsspec", "s3fs", "gcsfs", "obstore", "multi-storage-client", "botocore", "google-auth"),
    *("azure-identity", "huggingface_hub", "prometheus-client", "opentelemetry-sdk", "typer"),
    *("rich", "headrace-media"),
)
LIMITS = {
    "open_files": "RLIMIT_NOFILE",
    "processes": "RLIMIT_NPROC",
    "address_space_bytes": "RLIMIT_AS",
    "locked_memory_bytes": "RLIMIT_MEMLOCK",
    "file_size_bytes": "RLIMIT_FSIZE",
}
MEMORY = (
    *("memory_bytes", "memory_available_bytes", "memory_limit_bytes"),
    *("shm_bytes", "shm_size_bytes"),
)
_READ = (
    *("HEADRACE_", "OMP_", "GOMP_", "KMP_", "CUDA_VISIBLE", "NVIDIA_VISIBLE", "MALLOC_"),
    *("LD_PRELOAD", "PYTHONMALLOC", "PYTHONDEVMODE", "PYTHON_GIL", "TMPDIR"),
    *("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
)
# Decide where and how remote files are read; their values may be secrets.
_SECRET = ("AWS_", "GOOGLE_", "AZURE_", "HF_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_")


def look(root: str | os.PathLike[str] = "/") -> dict[str, Any]:
    """Facts by topic; unknown ones are None. Every value has a JSON form."""
    top = Path(root)
    facts = machine.look([], top)
    return {
        "headrace": _ours(),
        "python": _python(),
        "packages": packages(),
        "system": _system(top),
        "cpu": _cpu(top, facts),
        "memory": {name: facts[name] for name in MEMORY},
        "limits": {name: limit_of(which) for name, which in LIMITS.items()},
        "devices": _devices(top),
        "libraries": _libraries(),
        "environment": environment(os.environ),
        "secret_environment": {"set": hidden(os.environ)},
        "cache": _cache(top),
    }


def _ours() -> dict[str, Any]:
    folder = Path(_core.__file__ or "").parent
    engine = sorted(path.name for path in folder.glob("libheadrace*"))
    return {
        "version": _core.__version__,
        "folder": str(folder),
        "module": Path(_core.__file__ or "").name,
        "engine": engine[0] if engine else "inside the module",
        **_installed(),
    }


def _installed() -> dict[str, Any]:
    """From the package's metadata: what it was built for, what installed it, and from where."""
    try:
        package = metadata.distribution("headrace")
    except metadata.PackageNotFoundError:  # a checkout that is imported in place
        return {"wheel": None, "installer": None, "origin": None}
    tags = re.findall(r"^Tag: (.+)$", package.read_text("WHEEL") or "", re.MULTILINE)
    origin = json.loads(package.read_text("direct_url.json") or "{}")
    commit = origin.get("vcs_info", {}).get("commit_id")
    parts = (printable_url(origin.get("url", "")), commit)
    return {
        "wheel": ", ".join(tags) or None,
        "installer": (package.read_text("INSTALLER") or "").strip() or None,
        "origin": " at ".join(filter(None, parts)) or None,
    }


def printable_url(url: str) -> str:
    """Without a user's name and password."""
    return re.sub(r"//[^/@]*@", "//", url)


def _python() -> dict[str, Any]:
    return {
        "version": platform.python_version(),
        "implementation": platform.python_implementation(),
        "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
        "executable": sys.executable,
        "start_method": multiprocessing.get_all_start_methods()[0],
    }


def packages() -> dict[str, str]:
    """Versions of those PACKAGES that are installed."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
        except Exception as problem:  # metadata damaged by other software
            found[name] = f"unreadable: {problem}"
    return found


def _system(top: Path) -> dict[str, Any]:
    return {
        "distribution": _value_in(top / "etc/os-release", "=", "PRETTY_NAME"),
        "kernel": platform.release(),
        "libc": " ".join(platform.libc_ver()).strip() or None,
        "container": _container(top),
        "load": (machine.text_of(top / "proc/loadavg") or "").strip() or None,
        "huge_pages": machine.text_of(top / "sys/kernel/mm/transparent_hugepage/enabled"),
        "temporary_folder": _temporary_folder(top),
    }


def _value_in(file: Path, separator: str, *keys: str) -> str | None:
    """The value after the separator in the first line with one of the keys."""
    for line in (machine.text_of(file) or "").splitlines():
        key, _, value = line.partition(separator)
        if key.strip() in keys:
            return value.strip().strip("\"'")
    return None


def _container(top: Path) -> str | None:
    """The container runtime, if it identifies itself; with None, it may still be a container."""
    for file, name in ((".dockerenv", "docker"), ("run/.containerenv", "podman")):
        if (top / file).exists():
            return name
    return "kubernetes" if "KUBERNETES_SERVICE_HOST" in os.environ else None


def _temporary_folder(top: Path) -> str:
    try:
        return _folder(tempfile.gettempdir(), top)
    except FileNotFoundError as problem:  # names the folders that were tried
        return str(problem.strerror)


def _cpu(top: Path, facts: dict[str, Any]) -> dict[str, Any]:
    return {
        "architecture": platform.machine(),
        "model": _value_in(top / "proc/cpuinfo", ":", "model name", "Model"),
        "cores_allowed": facts["cores"],
        "cores": os.cpu_count(),
        "cgroup_limit": facts["cpu_limit"],
        "governor": facts["governor"],
        "numa_nodes": facts["numa_nodes"],
        "simd": instructions.in_force(),
        "instructions": facts["instructions"],
    }


def limit_of(which: str) -> int | None:
    """A limit of the process (``"RLIMIT_NOFILE"``) as it is now; None: unlimited."""
    number = resource.getrlimit(getattr(resource, which))[0]
    return None if number == resource.RLIM_INFINITY else number


def _devices(top: Path) -> dict[str, Any]:
    count, why_none = _core.cuda_devices()
    driver = (machine.text_of(top / "proc/driver/nvidia/version") or "").splitlines()
    return {
        "cuda_devices": count,
        "why_none": why_none or None,
        "driver": driver[0].strip() if driver else None,
        "models": [
            _value_in(file, ":", "Model") or "unknown"
            for file in sorted(top.glob("proc/driver/nvidia/gpus/*/information"))
        ],
        "links": [str(link) for link in machine.gpu_links(top)],
    }


def _libraries() -> dict[str, str]:
    """The libraries that are opened at their first use: which ones they are, or why they are not
    available. A library of the system is shown as its path, which ends with the version.
    """
    found = {}
    for kind in ("image", "audio"):
        for codec in sorted(_core.media()[kind]["formats"]):
            package, problem, origin = _core.codec_library(codec)
            if package:
                found[codec] = f"{problem} (package {package})" if problem else origin
    problem = _core.media_codecs()[1]
    found["video (headrace-av)"] = problem or "available"
    found["https and object stores (libcurl)"] = _core.curl_problem() or "available"
    return found


def environment(variables: Any) -> dict[str, str]:
    """The environment variables that affect Headrace, sorted."""
    return {name: variables[name] for name in sorted(variables) if name.startswith(_READ)}


def hidden(variables: Any) -> list[str]:
    """Names of the variables that affect how remote files are read, whose values may be secrets."""
    return [name for name in sorted(variables) if name.upper().startswith(_SECRET)]


def _cache(top: Path) -> dict[str, Any]:
    from headrace.environment import complaints

    folder = _core.cache_folder()
    return {
        "folder": _folder(folder, top) if folder else None,
        "problems": list(complaints(os.environ)),
    }


def _folder(path: str, top: Path) -> str:
    """A folder with what it is on, and its free space: "/tmp (solid state, 12.0 GB free)"."""
    there = Path(path)
    while not there.exists() and there != there.parent:
        there = there.parent
    try:
        free = f"{shutil.disk_usage(there).free / 1e9:.1f} GB free"
    except OSError as problem:
        free = str(problem.strerror)
    return f"{path} ({machine.disk_kind(str(there), top) or 'unknown disk'}, {free})"
