"""The formats that pinned distributions are exported in, by name."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pypi_assets.export import deptry, fawltydeps, gazelle, pants, uv_metadata
from pypi_assets.locks.pins import Remark, RemarkKind
from pypi_assets.questions.collisions import collisions
from pypi_assets.questions.locks import LockedAnswer


@dataclass(frozen=True, slots=True)
class Format:
    """`render` makes the text of the file, the same for the same answer.

    `has_one_owner`: each module has one project there. `is_of_modules`: it has modules at all.
    """

    render: Callable[[LockedAnswer], str]
    has_one_owner: bool = False
    is_of_modules: bool = True


FORMATS = {
    "gazelle": Format(gazelle.render, has_one_owner=True),
    "pants": Format(pants.render, has_one_owner=True),
    "deptry": Format(deptry.render),
    "fawltydeps": Format(fawltydeps.render),
    "uv-metadata": Format(uv_metadata.render, is_of_modules=False),
}
"""`summaries.py` describes each in a sentence."""
_OF_MODULES = frozenset({RemarkKind.UNREAD, RemarkKind.FROM_SDIST})
_SHOWN = 3


def remarks(name: str, answer: LockedAnswer) -> Iterator[Remark]:
    """What people should know about an export of this format: what it does not have, and why."""
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
                f"{', '.join(modules[:_SHOWN])}{rest}: of {names}, {collision['pip']} counts, which pip installs last"
            )
            yield Remark(RemarkKind.COLLISION, text)
    if not known.is_of_modules:
        yield from _without_requirements(answer)


def _without_requirements(answer: LockedAnswer) -> Iterator[Remark]:
    for release in answer.releases:
        sdist = uv_metadata.built_sdist(release)
        if sdist is not None and sdist.requires_dist is None:
            text = f"{release.pin.text}: what {sdist.filename} requires is known only once it is built"
            yield Remark(RemarkKind.NO_REQUIREMENTS, text, release.pin.normalized)
