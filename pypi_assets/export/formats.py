"""Render the files that other tools read, one format for each tool."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pypi_assets.export.module_owners import (
    described_modules,
    header,
    module_owners,
    python_mapping,
    stub_only,
    toml_array,
    toml_lines,
    wheel_name,
    yaml_text,
)
from pypi_assets.locks.lock_content import toml_text
from pypi_assets.locks.pins import Remark, RemarkKind
from pypi_assets.lookup.pinned_files import PinnedFile
from pypi_assets.questions.collisions import collisions
from pypi_assets.questions.locks import LockedAnswer, PinnedRelease

REPOSITORY = "pip"
"""The usual name of the repository of wheels in a workspace."""


def render_gazelle(answer: LockedAnswer) -> str:
    """Return the manifest, with sorted modules.

    A module's value is the name of its wheel, up to the first `-`. Gazelle looks up a module by its nearest ancestor,
    so a module is omitted if its nearest ancestor has the same value. A stub-only distribution has an entry under its
    wheel's name.
    """
    names = {release.pin.normalized: wheel_name(release) for release in answer.releases}
    mapping = {module: names[project] for module, project in module_owners(answer).simplified().items()}
    for release in answer.releases:
        if described_modules(release):
            stub = wheel_name(release).lower()
            mapping.setdefault(stub, stub)
    lines = [f"    {yaml_text(module)}: {yaml_text(mapping[module])}\n" for module in sorted(mapping)]
    modules = "".join(["  modules_mapping:\n", *lines]) if lines else "  modules_mapping: {}\n"
    return f"{header('gazelle', answer.lock)}manifest:\n{modules}  pip_repository:\n    name: {REPOSITORY}\n"


def render_pants(answer: LockedAnswer) -> str:
    """Return the target, with normalized names as keys.

    Pants looks up a module by its nearest ancestor, and ignores a module that two requirements have. So each module is
    listed once, and a submodule only if it belongs to another project than its package.
    """
    mapping: defaultdict[str, list[str]] = defaultdict(list)
    for module, project in module_owners(answer).simplified().items():
        mapping[project].append(module)
    return (
        f"{header('pants', answer.lock)}python_requirements(\n"
        f"    module_mapping={python_mapping(mapping, '    ')},\n"
        f"    type_stubs_module_mapping={python_mapping(stub_only(answer), '    ')},\n"
        ")\n"
    )


def render_deptry(answer: LockedAnswer) -> str:
    """Return the table. deptry compares names as written, so each project is listed in all its usual spellings."""
    return f"{header('deptry', answer.lock)}[tool.deptry.package_module_name_map]\n{toml_lines(answer)}"


def render_fawltydeps(answer: LockedAnswer) -> str:
    """Return one line for each spelling of a project.

    FawltyDeps prefers this file to the installed packages, so it contains only pinned versions.
    """
    return f"{header('fawltydeps', answer.lock)}{toml_lines(answer)}"


def render_uv_metadata(answer: LockedAnswer) -> str:
    """Return a table for each version that uv would otherwise build to find its requirements, if they are known."""
    return header("uv-metadata", answer.lock) + "".join(
        f"\n[[dependency-metadata]]\n{''.join(f'{key} = {value}{chr(10)}' for key, value in _fields(release, sdist))}"
        for release in answer.releases
        if (sdist := built_sdist(release)) is not None and sdist.requires_dist is not None
    )


def built_sdist(release: PinnedRelease) -> PinnedFile | None:
    """Return the sdist that uv would build, or None if a wheel has the metadata or there is no sdist."""
    return next((file for file in release.chosen if file.kind == "sdist"), None)


def _fields(release: PinnedRelease, sdist: PinnedFile) -> Iterator[tuple[str, str]]:
    yield "name", toml_text(release.pin.normalized)
    yield "version", toml_text(release.pin.version)
    yield "requires-dist", toml_array(sdist.requires_dist or ())
    if sdist.requires_python:
        yield "requires-python", toml_text(sdist.requires_python)
    if sdist.provides_extra:
        yield "provides-extra", toml_array(sorted(sdist.provides_extra))


@dataclass(frozen=True, slots=True)
class Format:
    """A format of exported files. `render` returns the text; equal answers give equal texts.

    `has_one_owner`: each module has exactly one project in this format. `is_of_modules`: the format contains modules.
    """

    render: Callable[[LockedAnswer], str]
    has_one_owner: bool = False
    is_of_modules: bool = True


FORMATS = {
    "gazelle": Format(render_gazelle, has_one_owner=True),
    "pants": Format(render_pants, has_one_owner=True),
    "deptry": Format(render_deptry),
    "fawltydeps": Format(render_fawltydeps),
    "uv-metadata": Format(render_uv_metadata, is_of_modules=False),
}
"""`summaries.py` describes each format in a sentence."""
_OF_MODULES = frozenset({RemarkKind.UNREAD, RemarkKind.FROM_SDIST})
_SHOWN = 3


def remarks(name: str, answer: LockedAnswer) -> Iterator[Remark]:
    """Yield remarks about an export in this format: missing data and the reasons."""
    known = FORMATS[name]
    for remark in answer.remarks:
        if known.is_of_modules or remark.kind not in _OF_MODULES:
            yield remark
    if known.has_one_owner:
        for collision in collisions(answer):
            modules = collision["modules"]
            rest = f" and {len(modules) - _SHOWN} more" if len(modules) > _SHOWN else ""
            names = ", ".join(one["project"] for one in collision["distributions"])
            text = (
                f"{', '.join(modules[:_SHOWN])}{rest}: provided by {names}; pip installs {collision['pip']} last,"
                " so it counts"
            )
            yield Remark(RemarkKind.COLLISION, text)
    if not known.is_of_modules:
        yield from _without_requirements(answer)


def _without_requirements(answer: LockedAnswer) -> Iterator[Remark]:
    for release in answer.releases:
        sdist = built_sdist(release)
        if sdist is not None and sdist.requires_dist is None:
            text = f"{release.pin.text}: the requirements of {sdist.filename} are unknown until it is built"
            yield Remark(RemarkKind.NO_REQUIREMENTS, text, release.pin.normalized)
