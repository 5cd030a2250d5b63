# SPDX-License-Identifier: Apache-2.0
"""What ./dev wheels builds from: archives that Debian's suites no longer have, and the headers of
Debian's Python.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
ARCHIVE = b"the sources of zlib"
SHA1 = hashlib.sha1(ARCHIVE).hexdigest()
NAME = "zlib_1.3.dfsg+really1.3.1.orig.tar.xz"
LIBRARY = {
    "package": "zlib",
    "version": "1:1.3.dfsg+really1.3.1-1",
    "sha256": hashlib.sha256(ARCHIVE).hexdigest(),
}


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip("tomllib")  # of Python 3.11, as ./dev wheels has it
    monkeypatch.syspath_prepend(str(ROOT / "tools" / "wheels"))
    return importlib.import_module


class Snapshot(BaseHTTPRequestHandler):
    """Answers like snapshot.debian.org about one version, whose files include a signature."""

    listed = (f"{NAME}.asc", "zlib_1.3.dfsg+really1.3.1-1.dsc", NAME)

    def do_GET(self) -> None:
        files = {
            SHA1 if name == NAME else f"{number:040x}": [{"name": name}]
            for number, name in enumerate(self.listed)
        }
        answers = {
            "/mr/package/zlib/1%3A1.3.dfsg%2Breally1.3.1-1/srcfiles?fileinfo=1": json.dumps(
                {"package": "zlib", "fileinfo": files}
            ).encode(),
            f"/file/{SHA1}": ARCHIVE,
        }
        answer = answers.get(self.path)
        self.send_response(404 if answer is None else 200)
        self.end_headers()
        self.wfile.write(answer or b"")

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def host() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Snapshot) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_an_archive_that_the_suite_no_longer_has_comes_from_the_snapshot(
    tools: Any, host: str, tmp_path: Path
) -> None:
    archive = tools("snapshot").fetch(LIBRARY, tmp_path, host)
    assert archive == tmp_path / NAME and archive.read_bytes() == ARCHIVE


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sha256": "0" * 64}, "has another checksum"),
        ({"version": "1:1.2-1"}, "404"),
    ],
)
def test_a_snapshot_without_the_pinned_archive_leaves_no_file(
    tools: Any, host: str, tmp_path: Path, change: dict[str, str], message: str
) -> None:
    with pytest.raises((LookupError, OSError), match=message):
        tools("snapshot").fetch({**LIBRARY, **change}, tmp_path, host)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["../zlib_1.orig.tar.gz", "zlib_1-1.debian.tar.xz", "zlib.tar.gz"])
def test_a_list_of_files_without_the_archive_is_an_error(tools: Any, name: str) -> None:
    answer = json.dumps({"fileinfo": {SHA1: [{"name": name}]}}).encode()
    with pytest.raises(LookupError, match="lists no archive of zlib"):
        tools("snapshot").archive_in(answer, "zlib")


def test_the_header_that_debians_python_includes_is_copied(
    tools: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, copies = tools("python_headers"), tmp_path / "copies"
    monkeypatch.setattr(module, "PYTHON_HEADERS", copies)
    folder = tmp_path / "python3.13"
    folder.mkdir()
    (folder / "pyconfig.h").write_text("#define HAVE_ALARM 1\n")
    module.copy_headers(folder, tmp_path)
    assert not copies.exists()

    (folder / "pyconfig.h").write_text(
        "# if defined(__x86_64__)\n#  include <x86_64-linux-gnu/python3.13/pyconfig.h>\n"
        "# elif defined(__i386__)\n#  include <i386-linux-gnu/python3.13/pyconfig.h>\n# endif\n"
    )
    with pytest.raises(SystemExit, match="includes <x86_64-linux-gnu/python3"):
        module.copy_headers(folder, tmp_path)
    header = tmp_path / "x86_64-linux-gnu" / "python3.13" / "pyconfig.h"
    header.parent.mkdir(parents=True)
    header.write_text("#define SIZEOF_LONG 8\n")
    module.copy_headers(folder, tmp_path)
    copied = [file.relative_to(copies) for file in copies.rglob("*") if file.is_file()]
    assert copied == [header.relative_to(tmp_path)]
