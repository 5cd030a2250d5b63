# SPDX-License-Identifier: Apache-2.0
"""A loader as plain data: everything that determines its batches, for a file or another machine.

Excludes values that are specific to a process (threads, memory, its rank).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace import _core, sampling
from headrace.errors import declare, warn
from headrace.loader.assembly import Assembly
from headrace.loader.options import KEYWORDS
from headrace.sources import Source
from headrace.sources.recipe import plain_recipe, plain_value, source_of_plain, value_of_plain
from headrace.step_config import config_of, name_of, steps_of
from headrace.transforms import Transform, require

_NOT_PLAIN = declare(
    "HR0173",
    "config",
    "loader cannot be described",
    "Loader.description() is plain data that JSON can hold. Transforms of headrace.transforms, "
    "samplers of headrace.sampling and sources of paths and arrays have such a form. Functions "
    "of your own do not: pickle the list of transforms, or let the script that defines them "
    "create the loader.",
)
_DIFFERS = declare(
    "HR0174",
    "config",
    "batches differ from the description",
    "A description defines the batches of a loader over certain records. Where it is used, "
    "records, transforms and outputs must be the same; otherwise batches and states would differ "
    "silently.",
)
NOT_PICKLABLE = declare(
    "HR0175",
    "config",
    "loaders cannot be pickled",
    "A loader has threads, memory and a position in an epoch, which cannot be copied. Create a "
    "loader in each process. Sources and transforms pickle, loader.description() is plain data, "
    "and state_dict() holds the position.",
)

_VERSION = 2


def decides(name: str) -> bool:
    """Whether batches depend on the keyword; shard= only selects a process's part of them."""
    own = ("shard", "quarantine", "error_budget", "patience", "workers")
    return name in KEYWORDS and name not in own and KEYWORDS[name].group != "Speed and memory"


def deciding(given: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords that determine batches, except defaults."""
    return {
        name: value
        for name, value in given.items()
        if decides(name) and value is not KEYWORDS[name].default
    }


def plan_fingerprint(engine: _core.Loader) -> str:
    """A fingerprint of the steps with their parameters, the outputs, and the library's version."""
    import hashlib  # imported here, since it is slow

    text = repr((_core.__version__, engine.plan_text(), engine.outputs()))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def describe(assembly: Assembly) -> dict[str, Any]:
    """The description as plain data. Raises ConfigError HR0173 if something cannot be described,
    HR0171 if the source has no recipe.
    """
    source, pipeline = assembly.source, assembly.pipeline
    steps: Any = pipeline.steps
    if pipeline.by_field or pipeline.dropped:
        steps = {**pipeline.by_field, **dict.fromkeys(pipeline.dropped)}
    given = deciding(assembly.given)
    plugins = {"plugins": found} if (found := _plugins([pipeline.all_steps(), given])) else {}
    return {
        "description": _VERSION,
        "headrace": _core.__version__,
        "source": plain_recipe(source),
        "transforms": config_of(steps, plain_value, _NOT_PLAIN),
        "keywords": {name: _plain(value) for name, value in given.items()},
        "records": len(source),
        "fingerprint": f"{source.fingerprint:016x}",
        "plan": plan_fingerprint(assembly.engine()),
        **plugins,
    }


def _plugins(parts: Any) -> list[dict[str, Any]]:
    """The plug-ins of these transforms and samplers, and of those in their arguments: the path and
    fingerprint of each."""
    found: dict[str, dict[str, Any]] = {}

    def look(value: Any) -> None:
        if isinstance(value, Mapping):
            value = list(value.values())
        if isinstance(value, (list, tuple)):
            for each in value:
                look(each)
        elif isinstance(value, (Transform, sampling.Sampling)):
            if plugin := getattr(value, "record", {}).get("plugin"):
                found[plugin["fingerprint"]] = dict(plugin)
            look(value.arguments if isinstance(value, Transform) else vars(value))

    look(parts)
    return list(found.values())


def parts_of(description: Mapping[str, Any]) -> tuple[Source, Any, dict[str, Any]]:
    """Source, transforms and keywords. Raises ConfigError HR0174 if the records differ."""
    if description.get("description") != _VERSION:
        raise _NOT_PLAIN.error(
            f"this is not a description of version {_VERSION}",
            hint="pass the result of loader.description()",
        )
    source: Source = source_of_plain(description["source"])
    for what, here in (("records", len(source)), ("fingerprint", f"{source.fingerprint:016x}")):
        if description[what] != here:
            raise _DIFFERS.error(
                f"{source!r}: {what} is {here}, but {description[what]} in the description"
            )
    for plugin in description.get("plugins", ()):
        require(plugin, load=False)
    keywords = {name: _made(value) for name, value in description["keywords"].items()}
    return source, steps_of(description["transforms"], value_of_plain), keywords


def check_plan(description: Mapping[str, Any], engine: _core.Loader) -> None:
    """Raises ConfigError HR0174 if the steps differ from the description; another version is a
    warning.
    """
    if plan_fingerprint(engine) == description["plan"]:
        return
    if description["headrace"] != _core.__version__:
        warn(
            f"the loader was described by Headrace {description['headrace']}, but this is "
            f"{_core.__version__}: batches may differ"
        )
        return
    raise _DIFFERS.error("the transforms or the outputs differ from the description")


def _plain(value: Any) -> Any:
    if isinstance(value, sampling.Sampling):
        if isinstance(value, (sampling.per_epoch, sampling.per_step)):
            raise _NOT_PLAIN.error(f"{value!r} calls a user-defined function")
        fields = getattr(value, "__dataclass_fields__", {})
        arguments = {name: _plain(getattr(value, name)) for name in fields}
        return {"sampling": type(value).__name__, "arguments": arguments}
    if isinstance(value, Mapping):
        return {"named": {str(name): _plain(item) for name, item in value.items()}}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, Source):
        return plain_value(value)
    if (name := name_of(value)) is not None:
        return name
    if callable(value):
        raise _NOT_PLAIN.error(f"{value!r} is a Python transform")
    return plain_value(value)


def _made(value: Any) -> Any:
    if isinstance(value, list):
        return [_made(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    if "sampling" in value:
        arguments = {name: _made(item) for name, item in value["arguments"].items()}
        return getattr(sampling, value["sampling"])(**arguments)
    if "named" in value:
        return {name: _made(item) for name, item in value["named"].items()}
    return value_of_plain(value)
