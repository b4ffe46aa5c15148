"""The results of questions about dependents."""

from typing import TypedDict


class Dependent(TypedDict):
    """A project (`normalized`) that requires the project `required`.

    Each list has versions in PEP 440 order: `always` has the versions that require it unconditionally, `marker` those
    that require it only under a marker, and `extra` those that require it only with an extra.
    """

    required: str
    normalized: str
    always: list[str]
    marker: list[str]
    extra: list[str]


class TransitiveDependent(TypedDict):
    """A `Dependent` with its `depth`, the length of the shortest path to it: 1 if it requires the project itself.

    `required` is the next project on this path.
    """

    depth: int
    required: str
    normalized: str
    always: list[str]
    marker: list[str]
    extra: list[str]
