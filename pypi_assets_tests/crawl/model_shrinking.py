"""Shrinks a failing history to one that still fails, with as few steps, operations and faults as possible."""

import time
from collections.abc import Callable, Iterator
from typing import Any

from pypi_assets_tests.crawl.model_steps import Step

_PLAIN = {
    "lifetimes": [None],
    "order": [],
    "is_cached": False,
    "history": False,
    "racing": 0.0,
    "revisits": 0.0,
    "forgets": False,
    "failing": 0.0,
    "seed": 0,
    "share": 100.0,
    "range_events": 500,
    "choice": 0,
    "seconds": 1.0,
}


def shrink(history: list[Step], fails: Callable[[list[Step]], bool], within_s: float) -> list[Step]:
    """Return the shortest failing history that is found in `within_s` seconds."""
    until = time.monotonic() + within_s
    is_shorter = True
    while is_shorter and time.monotonic() < until:
        is_shorter = False
        for shorter in _shorter(history):
            if time.monotonic() >= until:
                break
            if fails(shorter):
                history, is_shorter = shorter, True
                break
    return history


def _shorter(history: list[Step]) -> Iterator[list[Step]]:
    """Yield histories with one part removed, large parts first."""
    for length in (4, 2, 1):
        for start in range(1, len(history) - length + 1):
            yield history[:start] + history[start + length :]
    for number, (name, arguments) in enumerate(history):
        for simpler in _simpler(arguments):
            yield [*history[:number], (name, simpler), *history[number + 1 :]]


def _simpler(arguments: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for key, value in arguments.items():
        if key == "plan":
            for simpler in _simpler(value):
                yield arguments | {"plan": simpler}
        elif key in _PLAIN:
            if value != _PLAIN[key]:
                yield arguments | {key: _PLAIN[key]}
        elif isinstance(value, list):
            yield from (arguments | {key: value[:index] + value[index + 1 :]} for index in range(len(value)))
