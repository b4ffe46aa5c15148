"""Which pins of a lock an environment installs."""

from collections import deque
from collections.abc import Iterator
from itertools import pairwise

from pypi_assets.locks.environments import Environment
from pypi_assets.locks.lock_content import LockError
from pypi_assets.locks.pins import Graph, Lock, Node, Pin, Remark, RemarkKind


def selected_pins(lock: Lock, environment: Environment) -> tuple[tuple[Pin, ...], tuple[Remark, ...]]:
    """The pins whose marker may hold, and that something in the lock requires there; and remarks about them.

    All optional parts of the lock count: extras and groups. Raises LockError if the lock, or a package that is to be
    installed, is not for the environment.
    """
    if not environment.allows(lock.requires_python):
        raise LockError(f"{lock.filename}: it is for Python {lock.requires_python}, not for {environment.python_text}")
    if lock.environments and all(environment.holds(marker) is False for marker in lock.environments):
        environments = "; ".join(lock.environments)
        raise LockError(f"{lock.filename}: the environment is none of those that the lock is for: {environments}")
    reached = None if lock.graph is None or environment.is_any else _reached(lock.graph, environment)
    pins = tuple(
        pin
        for pin in lock.pins
        if environment.holds(pin.marker) is not False and (reached is None or (pin.normalized, pin.version) in reached)
    )
    for pin in pins:
        if not environment.allows(pin.requires_python):
            python = environment.python_text
            raise LockError(f"{lock.filename}: {pin.where}: it is for Python {pin.requires_python}, not for {python}")
    return pins, tuple(_two_versions(pins, environment, has_graph=lock.graph is not None))


def _reached(graph: Graph, environment: Environment) -> set[Node]:
    """The packages that the roots lead to. Of a root all extras count, of others those that are required."""
    every_extra = {node: {one.by_extra for one in graph.requires[node] if one.by_extra} for node in graph.roots}
    todo = deque((node, extra) for node in graph.roots for extra in (None, *sorted(every_extra[node])))
    found = set(todo)
    while todo:
        node, by_extra = todo.popleft()
        if node[1] is None:
            new = {(version, by_extra) for version in graph.versions[node[0]]} - found
            found |= new
            todo.extend(new)
            continue
        for one in graph.requires[node]:
            if one.by_extra == by_extra and environment.holds(one.marker) is not False:
                new = {(one.node, extra) for extra in (None, *one.extras)} - found
                found |= new
                todo.extend(new)
    return {node for node, _ in found}


def _two_versions(pins: tuple[Pin, ...], environment: Environment, *, has_graph: bool) -> Iterator[Remark]:
    """Where no installer could take the pins together. In a graph, extras can exclude each other."""
    for one, other in pairwise(pins):
        is_for_all = one.marker is None and other.marker is None and not has_graph
        if one.normalized == other.normalized and (environment.is_whole or is_for_all):
            text = f"{one.text} and {other.text} are both for the same environment"
            yield Remark(RemarkKind.TWO_VERSIONS, text, one.normalized)
