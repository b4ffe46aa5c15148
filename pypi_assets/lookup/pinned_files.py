"""The files of a pinned version, with the modules that each file provides."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pypi_assets.leveldbs.datasets.provided_names import FileNames
from pypi_assets.lookup.depgraph_reader import Distribution


@dataclass(frozen=True, slots=True)
class PinnedFile:
    """A file of a pinned version.

    `requires_dist` and `modules` are None if they are unknown. `stubs` are modules for which the file only has type
    stubs.
    """

    filename: str
    kind: str
    sha256: str | None
    requires_python: str | None
    requires_dist: tuple[str, ...] | None
    provides_extra: tuple[str, ...]
    yanked: bool
    outcome: str
    modules: tuple[str, ...] | None
    stubs: tuple[str, ...] = ()


def pinned_files(
    found: Sequence[Distribution], modules: Mapping[str, FileNames | None]
) -> tuple[str, tuple[PinnedFile, ...]] | None:
    """Return the display name of the project and the files of a version, or None without files."""
    files = tuple(_file(one, modules.get(one["filename"])) for one in found)
    return (found[-1]["project"], files) if files else None


def _file(one: Distribution, names: FileNames | None) -> PinnedFile:
    return PinnedFile(
        filename=one["filename"],
        kind=one["kind"],
        sha256=one["sha256"],
        requires_python=one["requires_python"],
        requires_dist=None if one["requires_dist"] is None else tuple(one["requires_dist"]),
        provides_extra=tuple(one["provides_extra"]),
        yanked=one["yanked"],
        outcome=one["outcome"],
        modules=None if names is None else names.names,
        stubs=() if names is None else names.stubs,
    )
