"""What was chosen as a requirements.txt with hashes, for `pip install --require-hashes -r` and `uv pip sync`."""

from collections.abc import Iterator

from pypi_assets.resolve.formats.rendering import Rendered, described
from pypi_assets.resolve.questions import ResolveError
from pypi_assets.resolve.universal import JoinedRelease, JoinedResolution


def as_requirements(answer: JoinedResolution) -> Rendered:
    """Each release with the hashes of all its files that the question allows.

    Raises ResolveError where no hash is known of a release.
    """
    remarks: list[str] = []
    lines = [f"# Made by `pypi-assets resolve --format requirements`, {described(answer)}."]
    for release in answer.releases:
        lines += _lines(answer, release, remarks)
    return Rendered("\n".join(lines) + "\n", tuple(remarks))


def _lines(answer: JoinedResolution, release: JoinedRelease, remarks: list[str]) -> Iterator[str]:
    marker = f" ; {release.marker}" if release.marker else ""
    files = answer.allowed_files(release)
    hashes = sorted({file["sha256"] for file in files if file["sha256"]})
    without = sorted(file["filename"] for file in files if not file["sha256"])
    if not hashes:
        raise ResolveError(f"no hash is known of any file of {release.normalized} {release.version}, so no lock has it")
    if without:
        remarks.append(f"left out, since no hash is known of it: {', '.join(without)}")
    parts = [f"{release.project}=={release.version}{marker}", *(f"    --hash=sha256:{one}" for one in hashes)]
    yield from (f"{part} \\" for part in parts[:-1])
    yield parts[-1]
    via = sorted({name for name, _ in release.required_by})
    yield f"    # via {', '.join(name or 'the requirements' for name in via)}"
