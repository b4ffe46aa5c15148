"""The pylock.toml format (PEP 751) of a resolution, for pip, uv and other installers."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol, TypeGuard

from packaging.specifiers import SpecifierSet
from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename
from packaging.version import Version

from pypi_assets.distributions.record import DistributionKind
from pypi_assets.locks.lock_content import toml_text
from pypi_assets.resolve.candidates import Row
from pypi_assets.resolve.formats.text import Rendered, described
from pypi_assets.resolve.questions import ResolveError
from pypi_assets.resolve.universal import JoinedRelease, JoinedResolution

if TYPE_CHECKING:
    from pypi_assets.catalog.reports.simple_page import SimpleFile, SimplePage


class Pages(Protocol):
    """A source of pages of the Simple API, such as a snapshot. They provide the URLs of files for locks."""

    def page(self, project: str, /) -> "SimplePage | None":
        """Return the page of a project, or None if it has none."""


def as_pylock(answer: JoinedResolution, pages: Pages) -> Rendered:
    """Render each release with the files that an installer can use in one of the environments.

    PEP 751 requires a hash, a URL, and a filename that matches the release. Other files are omitted, with a remark.
    Raises ResolveError if a release has no file left.
    """
    remarks: list[str] = []
    pythons = sorted({target.variables[0] for target in answer.targets}, key=Version)
    lines = [
        f"# Made by `pypi-assets resolve --format pylock`, {described(answer)}.",
        'lock-version = "1.0"',
        "environments = [",
        *(f"    {toml_text(target.marker)}," for target in answer.targets),
        "]",
        f'requires-python = ">={pythons[0]}"',
        'created-by = "pypi-assets"',
    ]
    versions: dict[str, int] = {}
    for release in answer.releases:
        versions[release.normalized] = versions.get(release.normalized, 0) + 1
    if not answer.releases:
        lines.append("packages = []")
    for release in answer.releases:
        lines += ["", "[[packages]]", *_package(answer, release, pages, versions, remarks)]
    lines += ["", "[tool.pypi-assets]", f"serial = {answer.serial}"]
    return Rendered("\n".join(lines) + "\n", tuple(remarks))


def _package(
    answer: JoinedResolution, release: JoinedRelease, pages: Pages, versions: dict[str, int], remarks: list[str]
) -> Iterator[str]:
    yield f"name = {toml_text(release.normalized)}"
    yield f"version = {toml_text(release.version)}"
    if release.marker:
        yield f"marker = {toml_text(release.marker)}"
    files = answer.installable_files(release)
    requires_python = {file["requires_python"] for file in files}
    if len(requires_python) == 1 and _is_specifier(specifier := requires_python.pop()):
        yield f"requires-python = {toml_text(specifier)}"
    if release.requires:
        yield "dependencies = ["
        for name, version in release.requires:
            which = f", version = {toml_text(version)}" if versions[name] > 1 else ""
            yield f"    {{name = {toml_text(name)}{which}}},"
        yield "]"
    found = _shown_files(release, files, pages, remarks)
    for file, shown in [one for one in found if one[0]["kind"] == DistributionKind.SDIST][:1]:
        yield f"sdist = {_file(file, shown)}"
    wheels = [one for one in found if one[0]["kind"] == DistributionKind.WHEEL]
    if wheels:
        yield "wheels = ["
        yield from (f"    {_file(*one)}," for one in wheels)
        yield "]"


def _shown_files(
    release: JoinedRelease, files: Iterable[Row], pages: Pages, remarks: list[str]
) -> "list[tuple[Row, SimpleFile]]":
    page = pages.page(release.normalized)
    on_page = {} if page is None else {file.filename: file for file in page.files}
    found, left_out = [], []
    for file in files:
        shown = on_page.get(file["filename"])
        if reason := _why_left_out(release, file, shown):
            left_out.append(f"{file['filename']} ({reason})")
        elif shown is not None:
            found.append((file, shown))
    if not found:
        raise ResolveError(
            f"a PEP 751 lock cannot contain {release.normalized} {release.version}: {', '.join(sorted(left_out))}"
        )
    if left_out:
        remarks.append(f"omitted from the lock: {', '.join(sorted(left_out))}")
    return found


def _why_left_out(release: JoinedRelease, file: Row, shown: "SimpleFile | None") -> str:
    if not file["sha256"]:
        return "its hash is unknown"
    if shown is None or not shown.url:
        return "its URL is unknown"
    try:
        if file["kind"] == DistributionKind.WHEEL:
            name, version, _, _ = parse_wheel_filename(file["filename"])
        else:
            name, version = parse_sdist_filename(file["filename"])
    except (InvalidWheelFilename, InvalidSdistFilename):
        return "its filename is not valid by PEP 751"
    is_of_release = (name, version) == (release.normalized, Version(release.version))
    return "" if is_of_release else "its filename belongs to another release"


def _is_specifier(text: str | None) -> TypeGuard[str]:
    try:
        return bool(text and SpecifierSet(text))
    except ValueError:  # InvalidSpecifier, or a number with thousands of digits
        return False


def _file(file: Row, shown: "SimpleFile") -> str:
    parts = [f"name = {toml_text(file['filename'])}"]
    if file["uploaded_at"]:
        parts.append(f"upload-time = {_in_utc(file['uploaded_at'])}")
    parts.append(f"url = {toml_text(shown.url or '')}")
    if file["size"] is not None:
        parts.append(f"size = {file['size']}")
    parts.append(f"hashes = {{sha256 = {toml_text(file['sha256'])}}}")
    return f"{{{', '.join(parts)}}}"


def _in_utc(text: str) -> str:
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).isoformat().replace("+00:00", "Z")
