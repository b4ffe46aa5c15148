"""The tables `dependency-metadata` of uv.toml: with them, uv resolves what has no wheel without building it."""

from collections.abc import Iterator

from pypi_assets.export.spellings import header, toml_array
from pypi_assets.locks.toml_text import toml_text
from pypi_assets.lookup.pinned_files import PinnedFile
from pypi_assets.questions.locks import LockedAnswer, PinnedRelease


def render(answer: LockedAnswer) -> str:
    """A table for each version that uv would build to learn what it requires, where that is known without."""
    return header("uv-metadata", answer.lock) + "".join(
        f"\n[[dependency-metadata]]\n{''.join(f'{key} = {value}{chr(10)}' for key, value in _fields(release, sdist))}"
        for release in answer.releases
        if (sdist := built_sdist(release)) is not None and sdist.requires_dist is not None
    )


def built_sdist(release: PinnedRelease) -> PinnedFile | None:
    """The sdist that uv would build; None where a wheel has the metadata, or where there is no sdist."""
    return next((file for file in release.chosen if file.kind == "sdist"), None)


def _fields(release: PinnedRelease, sdist: PinnedFile) -> Iterator[tuple[str, str]]:
    yield "name", toml_text(release.pin.normalized)
    yield "version", toml_text(release.pin.version)
    yield "requires-dist", toml_array(sdist.requires_dist or ())
    if sdist.requires_python:
        yield "requires-python", toml_text(sdist.requires_python)
    if sdist.provides_extra:
        yield "provides-extra", toml_array(sorted(sdist.provides_extra))
