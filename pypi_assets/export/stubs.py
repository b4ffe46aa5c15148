"""Distributions that have stubs alone, and what these describe."""

from pypi_assets.export.module_owners import topmost
from pypi_assets.questions.locks import LockedAnswer, PinnedRelease


def described_modules(release: PinnedRelease) -> list[str]:
    """The modules that a distribution without modules has stubs of, sorted, without those below others.

    >>> described_modules(types_pyyaml)
    ['yaml']
    """
    return [] if release.modules else topmost(stub for file in release.chosen for stub in file.stubs)


def stub_only(answer: LockedAnswer) -> dict[str, list[str]]:
    """The modules that each stub-only distribution (normalized) describes."""
    found: dict[str, set[str]] = {}
    for release in answer.releases:
        if described := described_modules(release):
            found.setdefault(release.pin.normalized, set()).update(described)
    return {project: topmost(modules) for project, modules in found.items()}
