# SPDX-License-Identifier: Apache-2.0
"""The reference, page by page, made from the engine's registries and the package's docstrings.

It is not committed: the records in the code are the source.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
PUBLIC_HEADERS = ("headrace/loader.h", "headrace/formats/pack/pack.h")

Record = dict[str, Any]


def pages() -> dict[str, str]:
    """Every generated page but those of transforms, by its path in the site."""
    import headrace
    from headrace import _core, errors

    codecs = {
        name: record
        for kind in ("image", "audio")
        for name, record in _core.media()[kind]["formats"].items()
    }
    return {
        "reference/formats.md": formats_page(_core.formats(), codecs),
        "reference/samplers.md": samplers_page(_core.samplers()),
        "reference/command-line.md": commands_page(),
        "reference/errors.md": errors_page(errors.all_codes()),
        "reference/python.md": python_page(headrace),
        "reference/cpp.md": cpp_page(),
    }


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    cells = [list(header), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    lines = ["| " + " | ".join(" ".join(cell.split()) for cell in row) + " |" for row in cells]
    return "\n".join([lines[0], "|" + "---|" * len(cells[0]), *lines[1:]])


def limits(param: Record) -> str:
    """The allowed values of a parameter: "one of ...", "0 to 1", "at least 1"."""
    if param["choices"]:
        either = {"floats": "or one of ", "strings": "each one of "}.get(param["type"], "one of ")
        return either + ", ".join(f"`{choice}`" for choice in param["choices"])
    low, high = param["minimum"], param["maximum"]
    if low == float("-inf"):
        return "" if high == float("inf") else f"at most {high:g}"
    return f"at least {low:g}" if high == float("inf") else f"{low:g} to {high:g}"


def params_table(params: list[Record]) -> str:
    rows = (
        (
            f"`{param['name']}`",
            param["type"],
            "required" if param["required"] else f"`{param['default']!r}`",
            limits(param),
            param["doc"],
        )
        for param in params
    )
    return table(("parameter", "type", "default", "values", "meaning"), rows) if params else ""


def joined(*blocks: str) -> str:
    return "\n\n".join(block for block in blocks if block) + "\n"


def python(code: str) -> str:
    return f"```python\n{code}\n```" if code else ""


def anchor(name: str) -> str:
    """An anchor that does not change with a heading: page.html#hr0305."""
    return f"({name.lower()})="


def formats_page(formats: dict[str, Record], codecs: dict[str, Record]) -> str:
    parts = [
        "# Formats and codecs",
        "`hr.open(path)` recognizes a format by its content; `hr.NAME(path, ...)` names it and "
        "takes its parameters. [The guide](../guide/data/formats/index.md) has a page for each.",
    ]
    for name, record in sorted(formats.items()):
        parts += [anchor(f"format-{name}"), f"## {name}", record["doc"]]
        parts += [python(record["example"]), params_table(record["params"])]
    rows = (
        (f"`{name}`", record["doc"], " ".join(record["suffixes"]), record["oracle"])
        for name, record in sorted(codecs.items())
    )
    return joined(*parts, "## Codecs", table(("codec", "decodes", "suffixes", "equals"), rows))


def samplers_page(samplers: dict[str, Record]) -> str:
    parts = [
        "# Samplers",
        "Each is a class of `hr.sampling`, for `sampler=` of a loader.",
    ]
    for name, record in sorted(samplers.items()):
        parts += [f"## {name}", record["doc"], python(record["example"])]
        parts.append(params_table(record["params"]))
    return joined(*parts)


KINDS = {
    "config": "Configuration: the arguments of a call or a command",
    "data": "Data: the contents of a file or a record",
    "storage": "Storage: reading and writing files",
    "unsupported": "Unsupported: valid, but not supported by this build",
    "resource": "Resources: memory, threads, processes, files",
}


def errors_page(codes: dict[str, Record]) -> str:
    parts = [
        "# Error codes",
        "Every error and warning has a code. `headrace explain CODE` prints its entry. "
        "[Troubleshooting](../start/troubleshooting.md) starts from symptoms.",
    ]
    for kind in sorted({record["kind"] for record in codes.values()}):
        parts.append(f"## {KINDS.get(kind, kind.capitalize())}")
        for code, record in sorted(codes.items()):
            if record["kind"] == kind:
                parts += [anchor(code), f"### {code}: {record['title']}", record["explanation"]]
    return joined(*parts)


def commands_page() -> str:
    """Every command with its arguments and options, as typer knows them."""
    import typer
    from headrace.cli.app import application

    group: Any = typer.main.get_command(application())
    parts = ["# Command line reference", group.help, group.epilog or ""]
    parts.append("[The command line](../tools/cli.md) explains the purpose of each command.")
    for name, command in sorted(group.commands.items()):
        usage = [f"headrace {name}"]
        arguments, options = [], []
        for param in command.params:
            if param.param_type_name == "argument":
                shown = (param.metavar or param.name.upper()) + ("..." if param.nargs != 1 else "")
                usage.append(shown if param.required else f"[{shown}]")
                arguments.append((f"`{shown}`", getattr(param, "help", None) or ""))
            elif not getattr(param, "hidden", False):
                options.append((option_names(param), default_of(param), param.help or ""))
        usage.append("[OPTIONS]")
        parts += [f"## {name}", f"```sh\n{' '.join(usage)}\n```", plain(command.help or "")]
        parts.append(table(("argument", "meaning"), arguments) if arguments else "")
        parts.append(table(("option", "default", "meaning"), options) if options else "")
        parts.append(examples(command.epilog or ""))
    return joined(*parts)


def option_names(option: Any) -> str:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    value = "" if option.is_flag else value_of(option)
    return names + (f" `{value}`" if value else "")


def value_of(option: Any) -> str:
    """The placeholder of an option's value: its metavar, its choices, or its type."""
    if option.metavar:
        return str(option.metavar)
    descriptor = getattr(option, "type_descriptor", None)  # typer without click
    kind = descriptor.annotation if descriptor else option.type
    choices = getattr(kind, "choices", None) or getattr(kind, "__members__", None)
    name = getattr(kind, "__name__", None) or getattr(kind, "name", "value")
    return "|".join(map(str, choices)) if choices else name.upper()


def default_of(option: Any) -> str:
    value = getattr(option.default, "value", option.default)
    return "" if value in (None, False) or callable(value) else f"`{value}`"


def plain(text: str) -> str:
    return inspect.cleandoc(text.replace("\b\n", ""))


def examples(epilog: str) -> str:
    lines = [line.strip() for line in plain(epilog).splitlines()[1:] if line.strip()]
    return "```sh\n" + "\n".join(lines) + "\n```" if lines else ""


def python_page(package: Any) -> str:
    """The public names of the package: Sphinx reads their signatures and docstrings."""
    parts = ["# Python API", "`import headrace as hr`. Transforms, formats and samplers have pages"]
    parts[-1] += " of their own: [transforms](transforms/index.md), [formats](formats.md), "
    parts[-1] += "[samplers](samplers.md); so have [the loader's options](loader-options.md)."
    groups: dict[str, list[str]] = {}
    for name in package.__all__:
        if name not in package.formats.__all__:
            groups.setdefault(group_of(name, getattr(package, name)), []).append(name)
    for title in sorted(groups, key=list(GROUPS.values()).index):
        parts.append(f"## {title}")
        for name in groups[title]:
            parts += [f"### {name}", directive(name, getattr(package, name))]
    return joined(*parts)


# By the module that defines a name, in the order of the page.
GROUPS = {
    "loader": "Loading",
    "batch": "Loading",
    "migrate": "Loading",
    "compose": "Loading",
    "decode": "Decoding one image",
    "sources": "Sources",
    "annotations": "Sources",
    "presets": "Presets",
    "delivery": "On the device",
    "insight": "Measuring",
    "convert": "Writing and converting",
    "index": "Writing and converting",
    "pack": "Writing and converting",
    "jobs": "Writing and converting",
    "fail_together": "Measuring",
    "remote": "Remote storage",
    "errors": "Errors and warnings",
    "": "Values",
}


def group_of(name: str, value: Any) -> str:
    module = value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", "")
    part = [*module.split("."), ""][1]
    return GROUPS.get(part, GROUPS.get(name, GROUPS[""]))


def directive(name: str, value: Any) -> str:
    if inspect.ismodule(value):
        if name in ("transforms", "formats", "sampling"):
            return f"{first_line(value)} See its page above."
        kind, options = "automodule", ["   :members:"]
    elif inspect.isclass(value):
        kind, options = "autoclass", ["   :members:", "   :inherited-members: object,Exception"]
    elif callable(value):
        kind, options = "autofunction", []
    else:
        return f"`{value!r}`"
    return "\n".join(["```{eval-rst}", f".. {kind}:: headrace.{name}", *options, "```"])


def first_line(value: Any) -> str:
    return (inspect.getdoc(value) or "").partition("\n")[0]


def cpp_page() -> str:
    """The public headers, unchanged."""
    parts = ["# C++ API", "[From C++](../guide/cpp.md) builds a program with these headers."]
    for name in PUBLIC_HEADERS:
        text = (ROOT / name).read_text()
        parts += [f"## {name}", f"```cpp\n{text}```"]
    return joined(*parts)
