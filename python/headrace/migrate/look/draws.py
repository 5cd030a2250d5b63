# SPDX-License-Identifier: Apache-2.0
"""Mock random numbers: they know their range, and each comparison is answered both ways, in
separate runs.

``random.random() < 0.5`` is a choice with probability 0.5, ``random.uniform(0.1, 2.0)`` a number
that an operator may draw itself.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from headrace.migrate.look.marks import Attempt

_MOST = 16  # maximum number of paths through a callable
Interval = tuple[str, float, float]  # ("uniform", low, high)


class Choices:
    """The answers of one run, and their probability."""

    def __init__(self, attempt: Attempt) -> None:
        self.attempt = attempt
        self.probability = 1.0

    def answer(self, probability: float) -> bool:
        if not 0 < probability < 1:
            return probability >= 1
        attempt = self.attempt
        if attempt.asked == len(attempt.answers):
            attempt.answers.append(False)
        answer = attempt.answers[attempt.asked]
        attempt.asked += 1
        self.probability *= probability if answer else 1 - probability
        return answer


def ways(attempt: Attempt, run: Callable[[Choices], Any]) -> Iterator[tuple[float, Any]]:
    """Calls ``run`` once for each combination of answers: its probability, and what it returned."""
    attempt.answers = []
    for _ in range(_MOST):
        attempt.asked = 0
        choices = Choices(attempt)
        out = run(choices)
        yield choices.probability, out
        while attempt.answers and attempt.answers[-1]:
            attempt.answers.pop()
        if not attempt.answers:
            return
        attempt.answers[-1] = True
    raise attempt.leave(f"has more than {_MOST} random paths")


class Drawn:
    """A uniform random number between two others. It may be used only once: after one comparison
    its distribution is no longer uniform.
    """

    def __init__(self, choices: Choices, low: float, high: float, used: list[bool]) -> None:
        self._choices = choices
        self._low, self._high = low, high
        self._used = used

    def interval(self) -> Interval:
        self._use()
        return ("uniform", min(self._low, self._high), max(self._low, self._high))

    def item(self) -> Drawn:  # of a tensor
        return self

    def _use(self) -> None:
        if self._used:
            raise self._choices.attempt.leave("uses a random number twice")
        self._used.append(True)

    def _below(self, other: Any) -> bool:
        if type(other) not in (int, float):
            raise self._choices.attempt.leave(
                "compares a random number with something other than a number"
            )
        self._use()
        share = (other - self._low) / (self._high - self._low)
        return self._choices.answer(share if self._high > self._low else 1 - share)

    def _moved(self, by: Any, scale: Any) -> Drawn:
        if type(by) not in (int, float) or type(scale) not in (int, float) or scale == 0:
            raise self._choices.attempt.leave("computes with a random number")
        low, high = self._low * scale + by, self._high * scale + by
        return Drawn(self._choices, low, high, self._used)

    def __lt__(self, other: Any) -> bool:
        return self._below(other)

    def __le__(self, other: Any) -> bool:
        return self._below(other)

    def __gt__(self, other: Any) -> bool:
        return not self._below(other)

    def __ge__(self, other: Any) -> bool:
        return not self._below(other)

    def __add__(self, other: Any) -> Drawn:
        return self._moved(other, 1)

    def __sub__(self, other: Any) -> Drawn:
        return self._moved(-other if type(other) in (int, float) else other, 1)

    def __rsub__(self, other: Any) -> Drawn:
        return self._moved(other, -1)

    def __mul__(self, other: Any) -> Drawn:
        return self._moved(0, other)

    __radd__, __rmul__ = __add__, __mul__

    def __getattr__(self, name: str) -> Any:
        if name[:2] == "__":
            raise AttributeError(name)
        raise self._choices.attempt.leave(f"uses .{name} of a random number")

    def _other(self, *_: Any) -> Any:
        raise self._choices.attempt.leave("computes with a random number")

    __float__ = __int__ = __index__ = __bool__ = __eq__ = __ne__ = _other
    __truediv__ = __pow__ = __neg__ = __round__ = __floordiv__ = __mod__ = _other
    __hash__ = object.__hash__


def replacements(choices: Callable[[], Choices | None]) -> dict[tuple[str, str], Any]:
    """Replaces the functions that draw a single number. Other functions draw as usual, which is
    detected."""

    def unit(real: Any, *shape: Any, **named: Any) -> Any:
        now = choices()
        return real(*shape, **named) if now is None or shape or named else Drawn(now, 0.0, 1.0, [])

    def uniform(real: Any, low: Any = 0.0, high: Any = 1.0, **named: Any) -> Any:
        now = choices()
        plain = all(type(each) in (int, float) for each in (low, high)) and not named
        if now is None or not plain or low == high:
            return real(low, high, **named)
        return Drawn(now, low, high, [])

    def tensor(real: Any, *shape: Any, **named: Any) -> Any:
        now = choices()
        single = shape in ((), (1,), ((),), ([],), ((1,),), ([1],)) and not named
        return Drawn(now, 0.0, 1.0, []) if now and single else real(*shape, **named)

    drawing = {
        ("random", "random"): unit,
        ("random", "uniform"): uniform,
        ("numpy.random", "rand"): unit,
        ("numpy.random", "random"): unit,
        ("numpy.random", "random_sample"): unit,
        ("numpy.random", "uniform"): uniform,
        ("torch", "rand"): tensor,
    }
    return {
        name: lambda real, draw=draw: functools.partial(draw, real)
        for name, draw in drawing.items()
    }
