# SPDX-License-Identifier: Apache-2.0
"""The results as docs/internals/reliability.md."""

from __future__ import annotations

from typing import Any

HEAD = """# Reliability in figures

Each promise below was attacked the stated number of times, and failures were counted. This command
repeats it:

```sh
{command}
```

The last run: {date}, commit `{commit}`, CPython {python}, `{instructions}`. If fewer inputs were
tried than planned, the time given with `--hours` ran out. Without `--hours`, every trial runs to
its full number.

| trial | promise | tried | failed | figures |
|---|---|---|---|---|
"""


def text(report: dict[str, Any]) -> str:
    command = f"./dev reliability --seed {report['seed']}"
    if report["hours"]:
        command += f" --hours {report['hours']:g}"
    head = HEAD.format(command=command, **report)
    return head + "".join(row(result) for result in report["trials"]) + failures(report)


def row(result: dict[str, Any]) -> str:
    tried = f"{result['inputs']:,} of {result['target']:,} {result['unit']}"
    figures = "; ".join(
        f"{name.replace('_', ' ')} {shown(v)}" for name, v in result["figures"].items()
    )
    cells = (f"`{result['name']}`", result["promise"], tried, f"{result['failed']:,}", figures)
    return "| " + " | ".join(cells) + " |\n"


def shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {number:,}" for name, number in value.items())
    return f"{value:,}" if isinstance(value, (int, float)) else str(value)


def failures(report: dict[str, Any]) -> str:
    found = [(one["name"], what) for one in report["trials"] for what in one["failures"]]
    if not found:
        return ""
    return "\n## What failed\n\n" + "".join(f"- `{name}`: {what}\n" for name, what in found)
