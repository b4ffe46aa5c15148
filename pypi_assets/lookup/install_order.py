"""In which order pip installs distributions: of a module that two of them have, the one that comes last remains.

uv installs in parallel, in no order that can be relied on.
"""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from pypi_assets.locks.environments import Environment

_PYTHON = "<python>"
"""What pip counts as a requirement of each distribution that states Requires-Python."""
_MOST_VISITS = 5
_ROOT = ""


@dataclass(frozen=True, slots=True)
class Installed:
    """A distribution to install: what pip's order depends on. `name` is normalized, `extras` are required with it."""

    name: str
    requires_dist: tuple[str, ...] = ()
    extras: frozenset[str] = frozenset()
    has_requires_python: bool = False


def pip_order(distributions: Iterable[Installed], environment: Environment) -> list[str]:
    """The names in the order in which `pip install` installs them together.

    What requires nothing comes first, then what requires only that, and so on; what requires itself in a circle comes
    last. Of equals, names come in reverse order. A requirement whose marker may hold counts.

        pip_order([Installed("app", ("lib",)), Installed("lib"), Installed("x")], ANY_ENVIRONMENT)  # x, lib, app
    """
    known = {one.name: one for one in distributions}
    graph = _graph(known, environment)
    weights = _layers(graph)
    circles = {node: required - weights.keys() for node, required in graph.items() if node not in weights}
    weights |= _depths(circles)
    return sorted(known, key=lambda name: (weights[name], name), reverse=True)


def _graph(known: Mapping[str, Installed], environment: Environment) -> dict[str, Set[str]]:
    """What each distribution requires of the others. With extras it is a node of its own, which requires the other."""
    graph: dict[str, Set[str]] = {}
    todo = [(name, extra) for name, one in known.items() for extra in (frozenset(), one.extras)]
    while todo:
        name, extras = todo.pop()
        node = _node(name, extras)
        if node in graph:
            continue
        required = {name} if extras else set()
        if known[name].has_requires_python:
            required.add(_PYTHON)
        for other, wanted in _required(known[name], extras, environment):
            if other in known:
                required.add(_node(other, wanted))
                todo.append((other, wanted))
        graph[node] = required - {node}
    if any(_PYTHON in required for required in graph.values()):
        graph[_PYTHON] = set()
    return graph


def _node(name: str, extras: frozenset[str]) -> str:
    return f"{name}[{','.join(sorted(extras))}]" if extras else name


def _required(one: Installed, extras: frozenset[str], environment: Environment) -> Iterable[tuple[str, frozenset[str]]]:
    for text in one.requires_dist:
        try:
            requirement = Requirement(text)
            marker = None if requirement.marker is None else str(requirement.marker)
            holds = any(environment.with_extra(extra).holds(marker) is not False for extra in extras or {""})
        except (InvalidRequirement, ValueError, RecursionError):  # what no installer could read either
            continue
        if holds:
            yield canonicalize_name(requirement.name), frozenset(map(canonicalize_name, requirement.extras))


def _layers(graph: Mapping[str, Set[str]]) -> dict[str, int]:
    """Of the nodes that lead into no circle, how many nodes there are less those of the layers before: what requires
    nothing is the first layer, and what requires only nodes of layers before the next.
    """
    requiring: dict[str, list[str]] = {node: [] for node in graph}
    missing = {node: len(required) for node, required in graph.items()}
    for node, required in graph.items():
        for other in required:
            requiring[other].append(node)
    weights: dict[str, int] = {}
    layer = [node for node, count in missing.items() if not count]
    while layer:
        weights |= dict.fromkeys(layer, len(graph) - len(weights))
        following = []
        for node in layer:
            for other in requiring[node]:
                missing[other] -= 1
                if not missing[other]:
                    following.append(other)
        layer = following
    return weights


def _depths(graph: Mapping[str, Set[str]]) -> dict[str, int]:
    """Of the nodes of circles, and of what requires them, the longest way there that was found.

    pip follows no node more than a few times, since there can be more ways than can be counted.
    """
    depths: dict[str, int] = {}
    visits: dict[str, int] = dict.fromkeys(graph, 0)
    path: dict[str, None] = {_ROOT: None}
    todo = [iter(sorted(graph))]
    while todo:
        node = next(todo[-1], None)
        if node is None:
            todo.pop()
            left, _ = path.popitem()
            if left != _ROOT:
                visits[left] += 1
                depths[left] = max(depths.get(left, 0), len(path))
        elif node not in path and visits[node] < _MOST_VISITS:
            path[node] = None
            todo.append(iter(sorted(graph[node])))
    return depths
