# SPDX-License-Identifier: Apache-2.0
"""A run of compare.py as Markdown tables and charts; figures.py inserts them into the documents."""

from __future__ import annotations

from typing import Any

from headrace.insight.kit.charts import Bar, Words, bars
from headrace.insight.kit.figure import standalone

REFERENCE = "DALI, fused"  # the reference for ratios in tables, if it ran
LEVELS = {"avx512": "AVX-512", "avx2": "AVX2", "neon": "NEON", "scalar": "scalar"}
# Including the form of a level for CPUs with slow pdep.
FORMS_OF_LEVELS = LEVELS | {"avx2-slow-pdep": "AVX2 without pdep"}
LABELS = 260  # pixels for the labels of a chart
FORMS = {"packed": "packed", "dense": "packed dense", "indexed": "indexed", "plain": "plain files"}


def set_of(report: dict[str, Any], name: str) -> dict[str, Any]:
    for pictures in report["sets"]:
        if pictures["name"] == name:
            return pictures
    raise KeyError(f"the run has no set {name}")


def sorted_peers(pictures: dict[str, Any]) -> list[dict[str, Any]]:
    return sorted(pictures["peers"], key=lambda peer: -peer["images_per_second"])


def circumstances(report: dict[str, Any]) -> str:
    machine = report["machine"]
    return (
        f"{report['does'][0].upper()}{report['does'][1:]}, batches of {report['batch_size']}; "
        f"{report['threads']} threads on as many pinned cores of {machine['processor']}; "
        f"median of {report['rounds']} alternating rounds, warm page cache; load average before it "
        f"{machine['load_average']:.1f}; {report['date']}."
    )


def pictures(report: dict[str, Any], name: str) -> str:
    """One sentence about the pictures of a set."""
    one = set_of(report, name)
    kinds = ", ".join(f"{count} {kind}" for kind, count in one["kinds"].items())
    mean = one["bytes"] / one["photos"] / 1000
    return f"{one['photos']:,} JPEGs of {mean:.0f} kB ({kinds}), listed {one['repeat']} times."


def loaders(report: dict[str, Any], name: str) -> str:
    """The table of a set: all peers, fastest first."""
    one = set_of(report, name)
    rate = {peer["name"]: peer["images_per_second"] for peer in one["peers"]}.get(REFERENCE)
    cold = any(peer["images_per_second_cold"] for peer in one["peers"])
    head = ["loader", "images/s"]
    head += ["x DALI"] if rate else []
    head += ["cold"] if cold else []
    head += ["CPU s per 1,000", "peak PSS, MiB", "bytes", "to prepare, s", "to first batch, s"]
    lines = [row(head), row(["---"] * len(head))]
    for peer in sorted_peers(one):
        mark = "**" if peer["ours"] else ""
        cells = [f"{mark}{peer['name']}{mark}", f"{mark}{peer['images_per_second']:,.0f}{mark}"]
        cells += [f"{peer['images_per_second'] / rate:.2f}"] if rate else []
        if cold:
            value = peer["images_per_second_cold"]
            cells.append(f"{value:,.0f}" if value else "")
        prepare = peer["prepare_seconds"]
        cells += [
            f"{peer['cpu_seconds_per_1000']:.3f}",
            f"{peer['peak_pss_mib']:,}",
            f"{peer['bytes_on_disk'] / one['bytes']:.3f}",
            f"{prepare:.1f}" if prepare else "",
            f"{peer['start_to_first_batch_seconds']:.1f}",
        ]
        lines.append(row(cells))
    return "\n".join(lines)


def summary(report: dict[str, Any], name: str) -> str:
    """A short version of the table of a set."""
    one = set_of(report, name)
    rate = {peer["name"]: peer["images_per_second"] for peer in one["peers"]}.get(REFERENCE)
    head = ["loader", "images/s", "x DALI", "CPU s per 1,000", "peak PSS, MiB", "bytes read"]
    lines = [row(head), row(["---"] * len(head))]
    for peer in sorted_peers(one):
        mark = "**" if peer["ours"] else ""
        ratio = f"{peer['images_per_second'] / rate:.1f}" if rate else ""
        cells = [
            f"{mark}{peer['name']}{mark}",
            f"{mark}{peer['images_per_second']:,.0f}{mark}",
            f"{mark}{ratio}{mark}" if ratio else "",
            f"{peer['cpu_seconds_per_1000']:.2f}",
            f"{peer['peak_pss_mib']:,}",
            f"{peer['bytes_on_disk'] / one['bytes']:.2f}",
        ]
        lines.append(row(cells))
    return "\n".join(lines)


def packing(report: dict[str, Any], name: str) -> str:
    """The output of `headrace pack` and `headrace index`."""
    one = set_of(report, name)
    lines = []
    for peer in one["peers"]:
        told = peer["prepare_details"]
        if not told.get("seconds"):
            continue
        line = (
            f"- {peer['name']}: {one['photos'] / told['seconds']:,.0f} images/s, "
            f"{peer['bytes_on_disk'] / one['bytes']:.3f} of the JPEG files' bytes"
        )
        kept = {why["reason"]: why["count"] for why in told.get("stored_unchanged", [])}
        if kept:
            line += "; stored as they are: " + ", ".join(f"{n} {why}" for why, n in kept.items())
        lines.append(line)
    return "\n".join(lines)


def hashes(report: dict[str, Any], name: str) -> str:
    """Whether our formats of a set gave the same batches."""
    found = set_of(report, name)["batch_hashes"]
    if not found:
        return ""
    if len(set(found.values())) == 1:
        return f"{', '.join(found)}: one batch hash, `{next(iter(found.values()))}`."
    return "**The forms gave different batches**: " + str(found)


def differences(report: dict[str, Any], name: str) -> str:
    """Versions, and how a peer's work differs."""
    lines = []
    for peer in set_of(report, name)["peers"]:
        if not peer["ours"]:
            tail = f": {peer['differs']}" if peer["differs"] else ""
            lines.append(f"- {peer['name']} ({peer['version']}){tail}")
    for failed, why in set_of(report, name)["failed"].items():
        lines.append(f"- {failed} is skipped: {why.splitlines()[-1]}")
    return "\n".join(lines)


def bar_chart(title: str, told: str, shown: list[Bar]) -> str:
    """An SVG file of rates."""
    words = Words(title, told, ("", "images/s"), [(bar.label, bar.text) for bar in shown])
    return standalone(bars(words, shown, lambda value: f"{value:,.0f}", "images/s", LABELS))


def loaders_chart(report: dict[str, Any], name: str) -> str:
    shown = []
    for peer in sorted_peers(set_of(report, name)):
        rate, rounds = peer["images_per_second"], peer["images_per_second_rounds"]
        kind = "step" if peer["ours"] else "mute"
        shown.append(Bar(peer["name"], rate, f"{rate:,.0f}", kind, min(rounds), max(rounds)))
    title = f"{name}: {report['workload']}, {report['threads']} CPU threads"
    return bar_chart(title, "Images per second: the median, and the range over the rounds.", shown)


def one_core_results(report: dict[str, Any]) -> dict[str, dict[str, float]]:
    return report["micro"]["one_core_bench"]["results"]


def headline(report: dict[str, Any]) -> str:
    """The single-core figures in a sentence."""
    results = one_core_results(report)

    def ratios(name: str, level: str) -> str:
        base = results[f"libjpeg/rgb/{name}"]["us_per_picture"]
        found = {
            form: results.get(f"sample/{form}/{name}/{level}")
            for form in ("packed", "indexed", "plain")
        }
        said = [f"{base / one['us_per_picture']:.1f} {form}" for form, one in found.items() if one]
        return ", ".join(said)

    parts = [f"{LEVELS[level]} {ratios('all', level)}" for level in ("avx512", "avx2")]
    parts += [
        f"4:2:0 alone, {LEVELS[level]} {ratios('420', level)}" for level in ("avx512", "avx2")
    ]
    return (
        "One core, stored bytes to a finished float16 sample, as a multiple of libjpeg-turbo's "
        f"speed when it only decodes: {'; '.join(parts)}."
    )


def one_core(report: dict[str, Any]) -> str:
    """From stored bytes to a float16 sample, compared with libjpeg-turbo's decoding alone."""
    results = one_core_results(report)
    titles = {"all": "all", "420": "4:2:0"}
    sets = [name for name in titles if f"libjpeg/rgb/{name}" in results]
    base = {name: results[f"libjpeg/rgb/{name}"]["us_per_picture"] for name in sets}
    head = ["one core"]
    for name in sets:
        head += [f"{titles[name]}: us", "images/s", "x libjpeg-turbo"]
    lines = [row(head), row(["---"] * len(head))]

    def add(title: str, key: str) -> None:
        cells = []
        for name in sets:
            result = results.get(key.format(name))
            if result is None:
                return
            us = result["us_per_picture"]
            cells += [f"{us:.0f}", f"{1e6 / us:,.0f}", f"**{base[name] / us:.2f}**"]
        lines.append(row([title, *cells]))

    add("libjpeg-turbo, to RGB", "libjpeg/rgb/{}")
    add("libjpeg-turbo, coefficients only", "libjpeg/coefficients/{}")
    for form, title in FORMS.items():
        for level, level_title in FORMS_OF_LEVELS.items():
            add(
                f"samples from {title.removesuffix(' files')} files, {level_title}",
                f"sample/{form}/{{}}/{level}",
            )
    return "\n".join(lines)


def stages(report: dict[str, Any]) -> str:
    """Whole pictures, windows, samples: microseconds per picture."""
    results = one_core_results(report)
    head = ["microseconds per image, AVX-512", "whole, to RGB", "a crop, to RGB", "crop to sample"]
    lines = [row(head), row(["---"] * len(head))]
    whole = results["libjpeg/rgb/all"]["us_per_picture"]
    lines.append(row(["libjpeg-turbo", f"{whole:.0f}", "", ""]))
    level = next(level for level in LEVELS if f"sample/plain/all/{level}" in results)
    for form, title in FORMS.items():
        cells = [title]
        for work in ("whole", "crop", "sample"):
            result = results.get(f"{work}/{form}/all/{level}")
            cells.append(f"{result['us_per_picture']:.0f}" if result else "")
        lines.append(row(cells))
    return "\n".join(lines)


def entropy(report: dict[str, Any]) -> str:
    """Whole pictures to coefficients, and the cost of each part."""
    results = report["micro"]["huffman_bench"]["results"]
    us = {name: 1e6 / one["items_per_second"] for name, one in results.items()}
    base = us["libjpeg"]
    head = ["entropy stage, whole images", "us", "images/s", "x libjpeg-turbo"]
    lines = [row(head), row(["---"] * len(head))]
    rows = {
        "libjpeg-turbo, `jpeg_read_coefficients`": "libjpeg",
        "four lanes, AVX-512": "entropy/avx512",
        "three lanes": "entropy/avx512_3_lanes",
        "two lanes": "entropy/avx512_2_lanes",
        "one lane": "entropy/avx512_1_lane",
        "four lanes, AVX2": "entropy/avx2",
        "four lanes, scalar": "entropy/scalar",
    }
    for title, key in rows.items():
        if key in us:
            cells = [f"{us[key]:.0f}", f"{1e6 / us[key]:,.0f}", f"{base / us[key]:.2f}"]
            lines.append(row([title, *cells]))
    parts = {
        "unstuffing and tables": "entropy/avx512_prepared",
        "the walk": "entropy/avx512_walked",
        "sums of DC differences": "entropy/avx512_without_blocks",
        "coefficients": "entropy/avx512",
    }
    if all(key in us for key in parts.values()):
        times = [us[key] for key in parts.values()]
        steps = [b - a for a, b in zip([0.0, *times], times, strict=False)]
        said = ", ".join(f"{name} {step:.0f}" for name, step in zip(parts, steps, strict=True))
        lines += ["", f"Of the four lanes' {times[-1]:.0f} us: {said}."]
    return "\n".join(lines)


def kernels(report: dict[str, Any]) -> str:
    """The inverse transform, and upsampling with color conversion, compared with libjpeg-turbo's
    own code."""
    results = report["micro"]["jpeg_rows_bench"]["results"]
    by = ["libjpeg-turbo", *LEVELS]
    head = ["", "libjpeg-turbo", *LEVELS.values()]
    lines = [row(head), row(["---"] * len(head))]
    rows = {
        "inverse transform, ns a block": ("idct", "ns/block"),
        "upsampling and color, 4:4:4, us a megapixel": ("upsample and color/444", "us/MP"),
        "upsampling and color, 4:2:0, us a megapixel": ("upsample and color/420", "us/MP"),
    }
    for title, (work, unit) in rows.items():
        found = [results.get(f"{work}/{how}") for how in by]
        lines.append(row([title, *(f"{one[unit]:,.1f}" if one else "" for one in found)]))
    return "\n".join(lines)


def one_core_chart(report: dict[str, Any]) -> str:
    """Samples per second for each format and level, compared with libjpeg-turbo."""
    results = one_core_results(report)

    def rate(key: str) -> float:
        return 1e6 / results[key]["us_per_picture"]

    base = rate("libjpeg/rgb/all")
    shown = [Bar("libjpeg-turbo, to RGB only", base, f"{base:,.0f}")]
    for form, title in FORMS.items():
        for level in ("avx512", "avx2"):
            key = f"sample/{form}/all/{level}"
            if key in results:
                text = f"{rate(key):,.0f} ({rate(key) / base:.1f} x)"
                shown.append(Bar(f"{title}, {LEVELS[level]}", rate(key), text, "step"))
    told = "Images per second, and how many times as many as libjpeg-turbo decodes to RGB."
    return bar_chart("One core: stored bytes to float16 sample", told, shown)


def scaling(report: dict[str, Any]) -> str:
    one = report["scaling"]
    cores = one["cores"]
    lines = [
        f"Whole decoding to RGB (`headrace bench --preset decode`) and {cores} separate "
        "processes of a plain libjpeg-turbo loop, each on a core of its own:",
        "",
        row(["", "1 core", f"{cores} cores", "scaling"]),
        row(["---"] * 4),
    ]
    for name, key in (("Headrace", "headrace"), ("libjpeg-turbo processes", "libjpeg_turbo")):
        single, many = one[key]["one"], one[key]["all"]
        lines.append(row([name, f"{single:,.0f}", f"{many:,.0f}", f"{many / single:.2f}"]))
    share = 100 * one["share_of_independent_scaling"]
    rate = 100 * one["share_of_independent_rate"]
    lines += [
        "",
        f"Headrace scales by {share:.0f} % of what separate processes do; its rate on all cores "
        f"is {rate:.0f} % of theirs.",
    ]
    return "\n".join(lines)


def row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"
