# SPDX-License-Identifier: Apache-2.0
"""Conditions on columns, as text: ``"label == 'cat' and image.width >= 512"``.

Conditions use Python's syntax, but are not run as Python: NumPy evaluates them on whole columns.

>>> import headrace as hr
>>> src = hr.records(x=[1, 2, 3], label=["cat", "dog", "cat"])
>>> values_of(src, "x * 2 > 3 and label == 'cat'").tolist()
[False, False, True]
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.errors import declare, did_you_mean
from headrace.sources.source import Source

_BAD_EXPRESSION = declare(
    "HR0144",
    "config",
    "invalid expression",
    "filter() and sort_by() take an expression of fields as text: names of fields, numbers, "
    "strings, + - * / // % **, comparisons, in, and, or, not, abs(), len() of text, and .width and "
    ".height of a field of images, which are read from headers. For anything else, pass a "
    "function of the record.",
)

_ARITHMETIC: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_COMPARISONS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "abs": np.abs,
    "len": lambda values: np.array([len(value) for value in values], np.int64),
}
_MOST_NODES = 1000  # nodes of a tree, since evaluation is recursive


def values_of(source: Source, text: str) -> np.ndarray[Any, Any]:
    """The expression's value for each record. Raises ConfigError HR0144 if it is not a valid
    expression of the fields.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as failure:
        raise _BAD_EXPRESSION.error(f"{text!r}: {failure}") from None
    if sum(1 for _ in ast.walk(tree)) > _MOST_NODES:
        raise _BAD_EXPRESSION.error(f"an expression of more than {_MOST_NODES} parts")
    try:
        with np.errstate(all="ignore"):
            value = _Evaluation(source, text).of(tree.body)
    except (TypeError, ValueError, OverflowError, ZeroDivisionError) as failure:
        raise _BAD_EXPRESSION.error(f"{text!r}: {failure}") from None
    values = np.asarray(value)
    if values.shape != (len(source),):
        raise _BAD_EXPRESSION.error(
            f"{text!r} has no value for each record (it has shape {values.shape})",
            hint="an expression of fields: " + ", ".join(f.name for f in source.schema),
        )
    return values


class _Evaluation:
    def __init__(self, source: Source, text: str) -> None:
        self._source = source
        self._text = text
        self._classes = source.class_to_idx
        self._columns: dict[str, Any] = {}  # values of fields, and sizes of images by (name,)

    def of(self, node: ast.expr) -> Any:
        """A value, or one for each record."""
        visit = getattr(self, f"_{type(node).__name__.lower()}", None)
        if visit is None:
            raise self._refused(node)
        return visit(node)

    def _refused(self, node: ast.AST) -> Exception:
        part = ast.get_source_segment(self._text.strip(), node) or type(node).__name__
        return _BAD_EXPRESSION.error(f"{part!r} is not supported in expressions")

    def _constant(self, node: ast.Constant) -> Any:
        if not isinstance(node.value, (bool, int, float, str)):
            raise self._refused(node)
        return node.value

    def _list(self, node: Any) -> list[Any]:
        return [self.of(each) for each in node.elts]

    _tuple = _set = _list

    def _name(self, node: ast.Name) -> Any:
        names = [field.name for field in self._source.schema if not field.encoded]
        if node.id not in names:
            raise _BAD_EXPRESSION.error(
                f"{node.id!r} is not a field that can be compared",
                hint=did_you_mean(node.id, names),
            )
        return self._once(node.id, lambda: np.asarray(self._source.column(node.id)))

    def _attribute(self, node: ast.Attribute) -> Any:
        if not isinstance(node.value, ast.Name) or node.attr not in ("height", "width"):
            raise self._refused(node)
        name = node.value.id
        sizes = self._once((name,), lambda: self._source.sizes(name))
        return sizes[:, ("height", "width").index(node.attr)]

    def _once(self, key: Any, read: Callable[[], Any]) -> Any:
        if key not in self._columns:
            self._columns[key] = read()
        return self._columns[key]

    def _call(self, node: ast.Call) -> Any:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in _FUNCTIONS or len(node.args) != 1 or node.keywords:
            raise self._refused(node)
        return _FUNCTIONS[name](self.of(node.args[0]))

    def _unaryop(self, node: ast.UnaryOp) -> Any:
        value = self.of(node.operand)
        if isinstance(node.op, ast.Not):
            return np.logical_not(_truth(value))
        if isinstance(node.op, ast.USub):
            return -value
        raise self._refused(node)

    def _boolop(self, node: ast.BoolOp) -> Any:
        join = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
        value = _truth(self.of(node.values[0]))
        for each in node.values[1:]:
            value = join(value, _truth(self.of(each)))
        return value

    def _binop(self, node: ast.BinOp) -> Any:
        apply = _ARITHMETIC.get(type(node.op))
        if apply is None:
            raise self._refused(node)
        left, right = self.of(node.left), self.of(node.right)
        if isinstance(left, (int, float)) and isinstance(right, (int, float)):
            left = float(left)  # prevents integers of a million digits
        return apply(left, right)

    def _compare(self, node: ast.Compare) -> Any:
        left = node.left
        out: Any = True
        for comparison, right in zip(node.ops, node.comparators, strict=True):
            pair = self._numbered(left, right)
            if isinstance(comparison, (ast.In, ast.NotIn)):
                if not isinstance(pair[1], list):
                    raise self._refused(node)
                found = np.isin(pair[0], np.asarray(pair[1]))
                value = found if isinstance(comparison, ast.In) else ~found
            elif type(comparison) in _COMPARISONS:
                value = _COMPARISONS[type(comparison)](*pair)
            else:
                raise self._refused(node)
            out, left = np.logical_and(out, value), right
        return out

    def _numbered(self, left: ast.expr, right: ast.expr) -> tuple[Any, Any]:
        """Both sides, with class names replaced by their numbers if the other side is the label."""
        values = self.of(left), self.of(right)
        classes = self._classes
        if not classes:
            return values
        labels = [isinstance(node, ast.Name) and node.id == "label" for node in (left, right)]
        return (
            self._number(values[0], classes) if labels[1] else values[0],
            self._number(values[1], classes) if labels[0] else values[1],
        )

    def _number(self, value: Any, classes: dict[str, int]) -> Any:
        if isinstance(value, list):
            return [self._number(each, classes) for each in value]
        if not isinstance(value, str):
            return value
        if value not in classes:
            raise _BAD_EXPRESSION.error(
                f"{value!r} is not a class of the source", hint=did_you_mean(value, list(classes))
            )
        return classes[value]


def _truth(value: Any) -> Any:
    array = np.asarray(value)
    if array.dtype != bool:
        raise TypeError(f"and, or, not and filter() want conditions, not {array.dtype} values")
    return array
