# SPDX-License-Identifier: Apache-2.0
"""The command line keeps its contract: keys, exit codes, and no decoration in a pipe."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from audio_files import wav_of, waves
from processes import COMMAND, run_code, run_command, run_on_terminal

pytest.importorskip("typer")
pytest.importorskip("rich")
Image = pytest.importorskip("PIL.Image")

PICTURES = Path(__file__).parent.parent / "examples" / "images"
BENCH_KEYS = {
    "images_per_second",
    "images_per_second_epochs",
    "first_batch_ms",
    "cpu_seconds_per_1000",
    "peak_rss_mib",
    "peak_pss_mib",
    "threads",
    "simd",
    "instructions",
    "batch_size",
    "records",
    "epochs",
    "bad_records",
    "batch_hash",
    "device",
    "finish",
    "decode",
    "decoded",
    "copied_bytes_per_record",
    "stages",
}
STAGES = {"read", "decode", "prepare", "transform", "resample", "store", "python", "wait"}


def run_json(*arguments: object) -> Any:
    done = run_command(*arguments, "--json")
    assert done.returncode in (0, 1), done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two classes of four images each."""
    for number, picture in enumerate(sorted(PICTURES.glob("*.jpg"))):
        target = tmp_path / "data" / ("ab"[number % 2])
        target.mkdir(parents=True, exist_ok=True)
        shutil.copy(picture, target)
    return tmp_path / "data"


@pytest.fixture
def damaged(folder: Path) -> Path:
    """The same, and one more that is not an image."""
    (folder / "b" / "broken.jpg").write_bytes(b"\xff\xd8\xff\xe0 this is not a picture")
    return folder


def test_bench_gives_every_key_of_its_contract(folder: Path) -> None:
    result = run_json("bench", folder, "--batch-size", 4, "--epochs", 2, "--threads", 2)
    assert set(result) == BENCH_KEYS
    assert result["copied_bytes_per_record"] == 0 and result["device"] is None
    assert set(result["stages"]) == STAGES
    assert (result["records"], result["epochs"], result["threads"]) == (8, 2, 2)
    assert result["batch_size"] == 4
    assert len(result["images_per_second_epochs"]) == 2
    assert result["images_per_second"] == pytest.approx(
        np.median(result["images_per_second_epochs"]), abs=0.2
    )
    assert min(result["first_batch_ms"], result["peak_rss_mib"], result["cpu_seconds_per_1000"]) > 0
    assert 1 < result["peak_pss_mib"] <= result["peak_rss_mib"] + 1  # no other process


@pytest.mark.parametrize("preset", ["imagenet-train", "imagenet-eval", "decode", "raw"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8"])
def test_bench_has_every_preset_and_dtype(folder: Path, preset: str, dtype: str) -> None:
    result = run_json(
        "bench", folder, "--preset", preset, "--dtype", dtype, "--epochs", 1, "--size", 32
    )
    assert result["images_per_second"] > 0


def test_bench_counts_the_records_by_kind(tmp_path: Path) -> None:
    (tmp_path / "0.wav").write_bytes(wav_of(waves(800)))
    done = run_command("bench", tmp_path, "--preset", "decode", "--epochs", 1)
    assert "audio clips/s" in done.stdout and "per 1,000 audio clips" in done.stdout, done.stderr


def test_bench_repeat_and_limit_select_the_records(folder: Path) -> None:
    assert run_json("bench", folder, "--epochs", 1, "--repeat", 3)["records"] == 24
    assert run_json("bench", folder, "--epochs", 1, "--limit", 3)["records"] == 3
    assert run_json("bench", folder, "--epochs", 1, "--limit", 3, "--repeat", 2)["records"] == 6
    assert run_json("bench", folder, "--epochs", 1, "--limit", 99)["records"] == 8


def test_bench_hash_depends_on_the_seed_and_not_on_the_threads(folder: Path) -> None:
    def hash_of(*options: object) -> str:
        result = run_json("bench", folder, "--epochs", 1, "--batch-size", 3, "--size", 48, *options)
        return str(result["batch_hash"])

    one = hash_of("--threads", 1)
    assert one == hash_of("--threads", 2)
    assert one != hash_of("--threads", 1, "--seed", 1)


def test_bench_hash_covers_the_pixels_in_order(folder: Path) -> None:
    """For decode it can be computed without Headrace, from Pillow's pixels."""
    picture = Image.new("RGB", (5, 3), (10, 200, 30))
    for name in ("a", "b"):
        shutil.rmtree(folder / name)
        (folder / name).mkdir()
        picture.save(folder / name / "x.png")
    result = run_json("bench", folder, "--preset", "decode", "--epochs", 1, "--batch-size", 2)
    pixels = np.array(picture).transpose(2, 0, 1).tobytes()
    labels = np.array([0, 1], np.int64).tobytes()
    expected = hashlib.sha256(pixels + pixels + labels).hexdigest()
    assert result["batch_hash"] == f"sha256:{expected}"


def test_info_names_records_fields_bytes_and_classes(folder: Path) -> None:
    facts = run_json("info", folder)
    assert facts["records"] == 8
    assert facts["classes"] == ["a", "b"]
    assert facts["records_per_class"] == [4, 4]
    assert facts["bytes"] == sum(p.stat().st_size for p in folder.rglob("*.jpg"))
    assert [field["name"] for field in facts["fields"]] == ["image", "label"]
    assert {"name", "kind", "dtype", "shape"} == set(facts["fields"][0])


def test_info_writes_the_requested_image(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "picture.png"
    assert run_command("info", folder, "--record", 1, "--image", out).returncode == 0
    with Image.open(out) as written, Image.open(sorted((folder / "a").iterdir())[1]) as original:
        assert written.size == original.size
        assert np.array_equal(np.array(written.convert("RGB")), np.array(original.convert("RGB")))


def test_info_of_a_missing_record_is_a_usage_error(folder: Path) -> None:
    done = run_command("info", folder, "--record", 8)
    assert done.returncode == 2
    assert "0..7" in done.stderr


@pytest.mark.parametrize("kind", ["image", "audio", "video"])
def test_info_and_scan_take_a_single_file(folder: Path, tmp_path: Path, kind: str) -> None:
    """By its content, for any name."""
    path = tmp_path / "single"
    if kind == "image":
        path.write_bytes((folder / "a/astronaut.jpg").read_bytes())
    elif kind == "audio":
        path.write_bytes(wav_of(waves(800)))
    else:
        path.write_bytes(b"\0\0\0\x14ftypisom\0\0\0\0isom")  # none of which can be read
    facts = run_json("info", path)
    assert facts["records"] == 1 and [field["kind"] for field in facts["fields"]] == [kind]
    assert run_json("scan", path)["bad"] == (kind == "video")


def test_scan_lists_a_single_file_with_a_wrong_suffix(tmp_path: Path) -> None:
    (tmp_path / "x.jpg").write_text("<html>not found</html>")
    assert run_json("scan", tmp_path / "x.jpg")["bad"] == 1
    (tmp_path / "x.txt2").write_text("neither")
    assert run_command("info", tmp_path / "x.txt2").returncode == 3


def test_scan_accepts_good_images(folder: Path) -> None:
    done = run_command("scan", folder)
    assert done.returncode == 0
    assert "0 bad of 8 records" in done.stdout


def test_scan_finds_the_bad_record_and_exits_with_1(damaged: Path, tmp_path: Path) -> None:
    out = tmp_path / "bad.jsonl"
    done = run_command("scan", damaged, "-o", out)
    assert done.returncode == 1, done.stderr
    assert "1 bad of 9 records" in done.stdout
    (entry,) = [json.loads(line) for line in out.read_text().splitlines()]
    assert entry["key"].endswith("broken.jpg")
    assert entry["code"].startswith("HR03")
    summary = run_json("scan", damaged)
    assert (summary["records"], summary["bad"]) == (9, 1)
    assert summary["bad_records"] == [entry]


def test_scan_strict_also_finds_damage_that_decoders_repair(folder: Path) -> None:
    victim = sorted((folder / "a").iterdir())[0]
    victim.write_bytes(victim.read_bytes()[:-2])  # only its end marker
    assert run_json("scan", folder)["bad"] == 0
    (entry,) = run_json("scan", folder, "--strict")["bad_records"]
    assert entry["key"].endswith(victim.name)


def test_a_file_that_cannot_be_written_is_refused_before_the_work(folder: Path) -> None:
    for arguments in (("scan", folder, "-o"), ("info", folder, "-i")):
        done = run_command(*arguments, "/nowhere/out")
        assert (done.returncode, done.stdout) == (2, "")
        assert "/nowhere/out: no such folder" in done.stderr
    assert run_command("scan", folder, "-o", folder).returncode == 2
    assert run_command("index", folder, "-o", "/nowhere/out").returncode == 4


def test_a_full_disk_leaves_an_existing_file_unchanged(damaged: Path, tmp_path: Path) -> None:
    """A limit on file size fails like a full disk."""
    written = tmp_path / "bad.jsonl"
    written.write_text("what was there\n")
    code = (
        "import resource\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (40, resource.RLIM_INFINITY))\n"
        "from headrace.cli import main; main()"
    )
    for arguments in (["scan", damaged, "-o", written], ["info", damaged, "-i", written]):
        words = [sys.executable, "-c", code, *map(str, arguments)]
        done = subprocess.run(words, capture_output=True, text=True)
        assert done.returncode == 4 and f"File too large: '{written}'" in done.stderr, done.stderr
        assert written.read_text() == "what was there\n"
        assert not list(tmp_path.glob("*.partial")) and not list(tmp_path.glob(".headrace-*"))


def test_counts_are_spelled_out_and_pipes_have_no_trailing_blanks(folder: Path) -> None:
    assert "2 classes, 4 records each\n" in run_command("info", folder).stdout
    shutil.rmtree(folder / "b")
    assert "1 class, 4 records each\n" in run_command("info", folder).stdout
    for command in (("formats",), ("operators",), ("info", folder / "a")):
        lines = run_command(*command).stdout.splitlines()
        assert [line for line in lines if len(line) > 100 and line != line.rstrip()] == []


def test_formats_lists_containers_and_codecs() -> None:
    listed = run_json("formats")
    assert "folder" in [record["name"] for record in listed["formats"]]
    assert {"jpeg", "png"} <= {record["name"] for record in listed["codecs"]}
    assert "jpeg" in run_command("formats").stdout


def test_formats_names_the_video_decoder_and_what_it_reads() -> None:
    listed = run_json("formats")
    assert {"h264", "hevc", "vp9", "av1", "aac"} <= set(listed["media"]["codecs"])
    assert {"mp4", "mkv", "gif"} <= {record["name"] for record in listed["videos"]}
    text = run_command("formats").stdout
    assert "headrace-av" in text and "h264, hevc" in text
    pictures = text[text.index("Formats of images") : text.index("Formats of audio clips")]
    assert "\ngif " in pictures and "\nwebp " in pictures, "which are videos, too"
    assert "headrace-av" in run_command("formats", "mp4").stdout
    assert "libavcodec" in run_command("formats", "headrace-av").stdout
    assert "Needs: libgif" in run_command("formats", "gif").stdout


def test_operators_describes_one_with_its_parameters_and_its_oracle() -> None:
    record = run_json("operators", "Resize")
    assert record["name"] == "Resize"
    assert "size" in [param["name"] for param in record["params"]]
    assert record["oracle"]
    text = run_command("operators", "Resize").stdout
    assert "size" in text and record["oracle"].split()[0] in text
    assert "Resize" in [record["name"] for record in run_json("operators")]


@pytest.mark.parametrize(
    ("command", "name", "told"),
    [
        ("operators", "RandomFlipHorizontal", "did you mean 'RandomHorizontalFlip'?"),
        (
            "operators",
            "LinearTransformation",
            "runs as a Python transform: put v2.LinearTransformation(...)",
        ),
        ("operators", "ToTensor", 'write ToDtype("float32", scale=True)'),
        ("operators", "Nonsense", "known: AddNoise, "),
        ("formats", "webdatset", "did you mean 'webdataset'?"),
        ("formats", "jpg", "did you mean 'jpeg'?"),
        ("explain", "HR035", "did you mean HR"),
        ("explain", "nonsense", "`headrace explain` lists them all"),
    ],
)
def test_an_unknown_name_is_a_usage_error_with_a_suggestion(
    command: str, name: str, told: str
) -> None:
    done = run_command(command, name)
    assert (done.returncode, done.stdout) == (2, "")
    assert name in done.stderr and told in done.stderr
    assert run_command(command, name, "--json").stdout == ""


def test_formats_describes_one_with_its_parameters_and_an_example() -> None:
    record = run_json("formats", "webdataset")
    assert {"fields", "missing"} <= {param["name"] for param in record["params"]}
    text = run_command("formats", "webdataset").stdout
    assert record["example"] in text and "json_fields" in text
    assert "libjpeg-turbo" in run_command("formats", "jpeg").stdout


def test_explain_says_what_every_code_means() -> None:
    codes = run_json("explain")
    assert codes
    for code in codes:
        assert code["title"] and len(code["explanation"]) > 40, code
    first = codes[0]["id"]
    assert run_json("explain", first.lower())["id"] == first
    assert codes[0]["title"] in run_command("explain", first).stdout


def test_exit_code_2_for_wrong_usage(folder: Path) -> None:
    assert run_command("bench").returncode == 2
    assert run_command("bench", folder, "--preset", "nonsense").returncode == 2
    assert run_command("bench", folder, "--batch-size", 0).returncode == 2
    assert run_command("nonsense").returncode == 2


def test_exit_code_3_for_missing_or_unreadable_data(damaged: Path, tmp_path: Path) -> None:
    done = run_command("info", tmp_path / "nowhere")
    assert done.returncode == 3
    assert "file or folder not found" in done.stderr
    (tmp_path / "data").rename(tmp_path / "train")
    assert 'did you mean "' in run_command("info", tmp_path / "trian").stderr
    (tmp_path / "train").rename(tmp_path / "data")
    (tmp_path / "noise").write_bytes(os.urandom(64))
    assert run_command("info", tmp_path / "noise").returncode == 3
    for command in (("bench", "--epochs", 1), ("doctor", "--seconds", 0.5)):
        name, *options = command
        done = run_command(name, damaged, *options, "--on-error", "raise")
        assert done.returncode == 3, done.stdout
        assert "broken.jpg" in done.stderr or "HR0302" in done.stdout
        assert "Traceback" not in done.stderr


def test_one_bad_file_does_not_end_a_measurement(damaged: Path) -> None:
    for policy in ("skip", "substitute"):
        result = run_json("bench", damaged, "--epochs", 1, "--on-error", policy)
        assert result["images_per_second"] > 0 and result["bad_records"] == 1
    assert re.search("bad records +1;", run_command("bench", damaged, "--epochs", 1).stdout)
    report = run_json("doctor", damaged, "--seconds", 1, "--batch-size", 2, "--skip", "remedies")
    assert report["rates"]["loader"] > 0 and not report["failed"]
    assert any("cannot be read or decoded: 1." in note for note in report["notes"])


def test_the_exit_code_says_if_nothing_was_measured(damaged: Path) -> None:
    for picture in damaged.glob("*/*"):
        picture.write_bytes(picture.read_bytes()[:60])
    for command in (("bench", "--epochs", 1), ("doctor", "--seconds", 0.5)):
        name, *options = command
        for policy in ("raise", "skip", "substitute"):
            done = run_command(name, damaged, *options, "--on-error", policy)
            assert done.returncode == 3, (command, policy, done.stdout)


def test_exit_code_4_names_the_extra_when_typer_is_missing(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise ModuleNotFoundError(name='typer')")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [*COMMAND, "formats"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 4
    assert done.stderr == ("headrace: the command line needs typer; run: pip install typer rich\n")


def test_there_is_no_color_and_no_progress_bar_in_a_pipe(folder: Path) -> None:
    for arguments in (
        ("bench", folder, "--epochs", 1),
        ("scan", folder),
        ("info", folder),
        ("formats",),
    ):
        done = run_command(*arguments)
        assert "\x1b" not in done.stdout + done.stderr, arguments
        assert done.stderr == "", arguments


def test_a_terminal_gets_colors_and_a_preview_unless_no_color_is_set(folder: Path) -> None:
    code, seen = run_on_terminal("info", folder, COLORTERM="truecolor")
    assert code == 0
    assert "\x1b[38;2;" in seen and "▀" in seen
    code, seen = run_on_terminal("info", folder, COLORTERM="truecolor", NO_COLOR="1")
    assert code == 0
    assert "\x1b[38" not in seen and "\x1b[3" not in seen and "▀" not in seen


def test_a_closed_pipe_is_not_an_error() -> None:
    command = " ".join(f"'{part}'" for part in [*COMMAND, "explain"])
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command} | head -c 1"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


def test_options_with_few_choices_list_them() -> None:
    for command, option, word in (("convert", "--to", "tfrecord"), ("pack", "--level", "dense")):
        done = run_command(command, PICTURES, "-o", "x", option, "nothing")
        assert (done.returncode, done.stdout) == (2, "")
        assert "'nothing' is not one of" in done.stderr and f"'{word}'" in done.stderr
        assert re.search(rf"[|\[]{word}[|\]]", run_command(command, "--help").stdout)


def test_help_does_not_wait_for_frameworks() -> None:
    code = (
        "import sys\n"
        "sys.argv = ['headrace', '--help']\n"
        "from headrace.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "assert 'torch' not in sys.modules and 'PIL' not in sys.modules\n"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def test_names_from_files_do_not_move_the_cursor(tmp_path: Path) -> None:
    import io
    import zipfile

    import headrace as hr

    array = io.BytesIO()
    np.save(array, np.arange(3))
    names = zipfile.ZipFile(tmp_path / "a.npz", "w")
    names.writestr("a\x1b[31mred\x07.npy", array.getvalue())
    names.close()
    from headrace.cli.output import console, printable

    assert printable("a\x1b[31m\udcff\té\n") == "a\\x1b[31m\\xff\té\n"
    screen = console()
    with screen.capture() as capture:
        screen.print("record 1: a\x1b[31mred \udce9.jpg", markup=False)
    assert capture.get() == "record 1: a\\x1b[31mred \\xe9.jpg\n"
    with pytest.raises(hr.ConfigError) as caught:
        hr.open(tmp_path / "a.npz", fields=["b"])
    assert "\x1b" not in str(caught.value)


def test_a_command_imports_no_other_command() -> None:
    done = run_code(
        "import sys; sys.argv[1:] = ['explain', 'HR0305']\n"
        "import atexit; from headrace.cli import main\n"
        "known = lambda: sorted(m for m in sys.modules if m in "
        "('headrace.cli.bench', 'headrace.cli.doctor', 'headrace.migrate', 'multiprocessing'))\n"
        "atexit.register(lambda: print('imported', known()))\n"
        "main()"
    )
    assert done.returncode == 0 and done.stdout.startswith("HR0305"), done.stderr
    assert done.stdout.endswith("imported []\n")
