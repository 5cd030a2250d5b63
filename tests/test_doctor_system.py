# SPDX-License-Identifier: Apache-2.0
"""`headrace doctor --system` prints everything that a bug report needs, and no secrets."""

from __future__ import annotations

import json
import os
import platform
import re
import resource
from pathlib import Path

import numpy as np
import pytest
from headrace.insight.measure import system
from processes import run_code, run_command

import headrace as hr


def test_the_json_object_has_each_topic() -> None:
    done = run_command("doctor", "--system", "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["headrace"]["version"] == hr.__version__
    assert facts["python"]["version"] == platform.python_version()
    assert facts["packages"]["numpy"] == np.__version__
    assert facts["cpu"]["cores_allowed"] == len(os.sched_getaffinity(0))
    assert facts["limits"]["open_files"] == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert set(facts) == {
        *("headrace", "python", "packages", "system", "cpu", "memory", "limits", "devices"),
        *("libraries", "environment", "secret_environment", "cache"),
    }
    assert {"webp", "tiff", "flac", "mp3"} <= set(facts["libraries"])


def test_the_text_fits_a_terminal_and_names_the_topics() -> None:
    done = run_command("doctor", "--system")
    assert done.returncode == 0, done.stderr
    for topic in ("headrace", "cpu", "limits", "libraries"):
        assert f"\n{topic}\n" in f"\n{done.stdout}"
    assert "open files" in done.stdout


def test_a_source_given_with_system_is_an_error(tmp_path: Path) -> None:
    done = run_command("doctor", "--system", str(tmp_path))
    assert done.returncode == 2
    assert "--system takes neither a SOURCE" in done.stderr


def test_variables_that_may_be_secrets_are_not_shown() -> None:
    given = {"AWS_SECRET_ACCESS_KEY": "x", "HF_TOKEN": "x", "OMP_NUM_THREADS": "4", "HOME": "/x"}
    assert system.environment(given) == {"OMP_NUM_THREADS": "4"}
    assert system.hidden(given) == ["AWS_SECRET_ACCESS_KEY", "HF_TOKEN"]
    assert system.hidden({"https_proxy": "http://me:x@proxy"}) == ["https_proxy"]
    assert system.printable_url("https://me:x@host/headrace.git") == "https://host/headrace.git"


def test_the_installation_method_is_reported() -> None:
    facts = system.look()["headrace"]
    assert facts["installer"] == "pip"
    assert re.fullmatch(r"cp3\d+-(abi3|cp3\d+)-\w+", facts["wheel"])


def test_folders_are_reported_with_their_disk_and_free_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "not" / "made"))
    facts = system.look()
    pattern = r".+ \([^()]+(\([^()]+\))?, [\d.]+ GB free\)"
    assert re.fullmatch(pattern, facts["cache"]["folder"])
    assert facts["cache"]["folder"].startswith(f"{tmp_path}/not/made (")
    assert re.fullmatch(pattern, facts["system"]["temporary_folder"])


def test_without_a_usable_temporary_folder_the_report_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr("tempfile._candidate_tempdir_list", lambda: [str(tmp_path / "missing")])
    told = system.look()["system"]["temporary_folder"]
    assert told == f"No usable temporary directory found in ['{tmp_path}/missing']"


def test_an_invalid_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_CACHE", "relative")
    assert "relative" in system.look()["cache"]["problems"][0]


def test_system_facts_come_from_system_files(tmp_path: Path) -> None:
    files = {
        "etc/os-release": 'NAME="Other"\nPRETTY_NAME="Other Linux 3"\n',
        "proc/cpuinfo": "processor : 0\nmodel name\t: Quick 9000\n",
        "proc/driver/nvidia/version": "NVRM version: 999.1\nGCC version: 12\n",
        "proc/driver/nvidia/gpus/0000:01:00.0/information": "Model: \t\t NVIDIA H900\nIRQ: 5\n",
        "proc/loadavg": "1.50 1.00 0.50 2/300 999\n",
        "run/.containerenv": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    facts = system.look(tmp_path)
    assert facts["system"]["distribution"] == "Other Linux 3"
    assert facts["system"]["container"] == "podman"
    assert facts["cpu"]["model"] == "Quick 9000"
    assert facts["devices"]["driver"] == "NVRM version: 999.1"
    assert facts["devices"]["models"] == ["NVIDIA H900"]
    assert facts["system"]["load"] == "1.50 1.00 0.50 2/300 999"


def test_an_unset_limit_is_reported_as_none() -> None:
    assert system.limit_of("RLIMIT_FSIZE") in (None, resource.getrlimit(resource.RLIMIT_FSIZE)[0])


def test_packages_are_not_imported() -> None:
    done = run_code(
        "import sys; from headrace.insight.measure import system; system.look(); "
        "print([name for name in ('torch', 'jax', 'tensorflow', 'PIL') if name in sys.modules])"
    )
    assert done.stdout.strip() == "[]", done.stderr
