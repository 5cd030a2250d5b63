# SPDX-License-Identifier: Apache-2.0
"""Cost of opening a long video, with and without a cached index: `python bench/video_open.py`.

Twenty minutes at 30 frames per second, as MP4 and Matroska, small (read whole) and large (read by
range; padded, because the frames' content does not matter here). A clip is one frame from the
middle, so that nearly all of its time is opening. Measures CPU time of this process per clip, on
one thread, the minimum over the rounds; bytes read; and the growth of its peak memory over all
rounds.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import headrace as hr
from headrace import transforms as T

FRAMES = 36_000
PAD = 1 << 30  # size of a hole at the end of the large files


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clips", type=int, default=20, help="clips per round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="folder for the encoded videos")
    return parser.parse_args()


def made(folder: Path) -> dict[str, Path]:
    folder.mkdir(parents=True, exist_ok=True)
    out = {}
    for name, suffix in (("MP4", "mp4"), ("Matroska", "mkv")):
        path = folder / f"small.{suffix}"
        if not path.exists():
            source = f"testsrc2=size=64x48:rate=30:duration={FRAMES // 30}"
            command = ["ffmpeg", "-v", "error", "-nostdin", "-f", "lavfi", "-i", source]
            options = "-c:v libx264 -preset ultrafast -g 250 -pix_fmt yuv420p -crf 45"
            subprocess.run([*command, *options.split(), str(path)], check=True)
        out[name] = path
        large = folder / f"large.{suffix}"
        if not large.exists():
            shutil.copy(path, large)
            with large.open("r+b") as file:
                file.seek(0, os.SEEK_END)
                if suffix == "mp4":
                    file.write(PAD.to_bytes(4, "big") + b"free")
                    file.truncate(path.stat().st_size + PAD)
                else:  # after the segment, where nothing is read
                    file.write(b"\xec\x01" + (PAD - 9).to_bytes(7, "big"))
                    file.truncate(path.stat().st_size + PAD)
        out[f"{name}, 1 GiB more"] = large
    return out


def read_bytes() -> int:
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["rchar"])


def measured(source: Any, clips: int, rounds: int, **options: Any) -> tuple[float, float, float]:
    """Milliseconds and MB read per clip, and the growth of peak memory in MiB."""
    steps = [T.CenterVideoClip(1)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    loader = hr.Loader(source, steps, batch_size=1, threads=1, ragged="list", **options)
    times, read = [], 0
    for _ in range(rounds + 1):  # the first one warms up
        begin, read_before = time.process_time(), read_bytes()
        for _ in loader:
            pass
        times.append(time.process_time() - begin)
        read = read_bytes() - read_before
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    loader.close()
    return 1e3 * min(times[1:]) / clips, read / clips / 1e6, grown / 1024


def main() -> None:
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["HEADRACE_CACHE"] = f"{scratch}/cache"
        files = made(arguments.keep or Path(scratch) / "videos")
        print(f"{'file':26}{'':14}{'ms a clip':>10}{'MB read':>10}{'MiB more':>10}")
        for name, path in files.items():
            folder = Path(scratch) / name.replace(" ", "_").replace(",", "")
            folder.mkdir()
            for number in range(arguments.clips):
                (folder / f"{number}{path.suffix}").symlink_to(path.absolute())
            source = hr.open(folder)
            rows = {
                "without index": measured(source, arguments.clips, arguments.rounds, index=False)
            }
            built = hr.index(source)
            rows["with index"] = measured(source, arguments.clips, arguments.rounds)
            if path.stat().st_size < 1 << 28:
                pack = Path(scratch) / f"{folder.name}.hrpack"
                hr.pack(source, pack)
                packed = hr.open(pack)
                rows["in a pack"] = measured(packed, arguments.clips, arguments.rounds, index=False)
            for way, (ms, megabytes, more) in rows.items():
                print(f"{name:26}{way:14}{ms:10.2f}{megabytes:10.2f}{more:10.1f}")
            print(f"{'':26}index: {built['bytes'] / arguments.clips / 1e3:.0f} kB a video")


if __name__ == "__main__":
    main()
