"""Parse the filename of a distribution into kind, project, version and tags. The file itself is never opened."""

import re
from collections.abc import Iterator, Sequence

from pypi_assets.characters import is_digits, is_printable, lower, replace_unprintable
from pypi_assets.distributions.record import DistributionKind, FilenameParts
from pypi_assets.distributions.requirements import is_version

MAX_FILENAME_LENGTH = 1000
SDIST_SUFFIXES = (
    *(".tar.gz", ".tgz", ".tar.bz2", ".tbz", ".tar.xz", ".txz", ".tlz", ".tar.lz", ".tar.lzma", ".tar.z", ".tar"),
    ".zip",
)
"""The suffixes that pip accepts, and the historic `.tar.Z`."""
_SUFFIX_KINDS = {
    ".whl": DistributionKind.WHEEL,
    **dict.fromkeys(SDIST_SUFFIXES, DistributionKind.SDIST),
    ".egg": DistributionKind.EGG,
    ".exe": DistributionKind.WININST,
    ".msi": DistributionKind.MSI,
    ".rpm": DistributionKind.RPM,
    ".deb": DistributionKind.DEB,
    ".dmg": DistributionKind.DMG,
}

_MACHINE = (
    r"(?:x86_64|amd64|i[3-6]86|x86|aarch64|arm\w*|ppc\w*|powerpc\w*|s390x?|universal\d?|fat\d*|intel|ia64"
    r"|sparc\w*|sun4\w|alpha\w*|mips\w*|riscv\w*|loongarch64|noarch)"
)
_PLATFORM = (
    r"(?:win32|win-(?:amd64|arm64|arm32|ia64)"
    rf"|(?:linux|macosx|darwin|freebsd|openbsd|netbsd|dragonfly|solaris|sunos|aix|cygwin|mingw|gnu|hp-ux)"
    rf"(?:-[\w.]+)*-{_MACHINE})"
)
_ANY_CASE = re.IGNORECASE | re.ASCII
_TAGS = r"\w+(?:\.\w+)*"
_WHEEL = re.compile(
    rf"[A-Za-z0-9.]+(?:_[A-Za-z0-9.]+)*_?-(?P<version>[^-\s]+)(?:-[0-9][^-\s]*)?-{_TAGS}-{_TAGS}-{_TAGS}\.whl", re.ASCII
)
_PYTHON_TAG = re.compile(r"[a-z]{2,}[0-9]\w*(?:\.[a-z]{2,}[0-9]\w*)*", re.ASCII)
_VARIANT = re.compile(r"[0-9a-z._]{1,16}", re.ASCII)
_DUMB = re.compile(rf"(?P<release>.+-v?\d.*)\.(?P<platform>{_PLATFORM})", _ANY_CASE)
_WINDOWS = re.compile(rf"(?P<release>.+?)[.-](?P<platform>{_PLATFORM})(?:-(?P<python>py\d[\d.]*))?", _ANY_CASE)
_DASH = re.compile("-")
_OTHERS = re.compile(r"[^a-z0-9]+")
_EGG = re.compile(r"(?P<release>.+?)-(?P<python>py\d[\d.]*)(?:-(?P<platform>.+))?", re.ASCII)
_RPM = re.compile(r"(?P<release>.+)-(?P<build>[^-]+)\.(?P<platform>[^-.]+)")
_DEB = re.compile(r"(?P<project>[^_]+)_(?P<version>[^_]+)_(?P<platform>[^_]+)")
_DMG = re.compile(r"(?P<release>.+?)(?:-(?P<python>py\d[\d.]*))?(?:[.-](?P<platform>macosx.+))?", re.ASCII)


def parse_filename(filename: str, project: str | None = None) -> FilenameParts:
    """Return the parts of `filename`, with None for missing parts. Never raise an error.

    `project`, as displayed or normalized, is the project that the file belongs to, if known. It decides how to split
    the name of an sdist that has more than one dash. A filename is UNKNOWN if it has more than 1,000 characters, an
    unprintable character or a path separator. Such a character is replaced in the result.
    """
    if not is_printable(filename) or "/" in filename or "\\" in filename:
        cleaned = replace_unprintable(filename, "\ufffd").replace("/", "\ufffd").replace("\\", "\ufffd")
        return FilenameParts(cleaned, DistributionKind.UNKNOWN)
    written = lower(filename)
    suffix = next((suffix for suffix in _SUFFIX_KINDS if written.endswith(suffix)), None)
    if suffix is None or len(filename) > MAX_FILENAME_LENGTH:
        return FilenameParts(filename, DistributionKind.UNKNOWN)
    stem = filename[: -len(suffix)]
    match kind := _SUFFIX_KINDS[suffix]:
        case DistributionKind.WHEEL:
            return _parse_wheel(filename, stem, project)
        case DistributionKind.SDIST:
            if dumb := _DUMB.fullmatch(stem):
                return _parse_release(filename, DistributionKind.DUMB, dumb, project)
            return FilenameParts(filename, kind, *split_release(stem, project))
        case DistributionKind.EGG:
            return _parse_release(filename, kind, _EGG.fullmatch(stem), project, stem)
        case DistributionKind.RPM:
            return _parse_release(filename, kind, _RPM.fullmatch(stem), project, stem)
        case DistributionKind.DMG:
            return _parse_release(filename, kind, _DMG.fullmatch(stem), project, stem)
        case DistributionKind.DEB:
            match = _DEB.fullmatch(stem)
            return FilenameParts(filename, kind, **(match.groupdict() if match else {}))
        case _:
            return _parse_release(filename, kind, _WINDOWS.fullmatch(stem), project, stem)


def _parse_release(
    filename: str, kind: DistributionKind, match: re.Match[str] | None, project: str | None, stem: str = ""
) -> FilenameParts:
    groups = match.groupdict() if match else {"release": stem}
    name, version = split_release(groups.pop("release"), project)
    return FilenameParts(filename, kind, name, version, **groups)


def _parse_wheel(filename: str, stem: str, project: str | None) -> FilenameParts:
    """Parse `{name}-{version}(-{build})?-{python}-{abi}-{platform}` (PEP 427).

    Names of historic wheels may contain dashes. A wheel variant has a label after the platform (PEP 825). A name that
    no standard covers has no version.
    """
    parts = stem.split("-")
    if len(parts) < 5:
        return FilenameParts(filename, DistributionKind.WHEEL, *_split_valid(stem, project))
    variant = parts.pop() if _has_variant(parts) else None
    *release, python, abi, platform = parts
    build = release.pop() if _has_build(release, project) else None
    name, version = (
        (release[0] or None, release[1] or None) if len(release) == 2 else _split_valid("-".join(release), project)
    )
    return FilenameParts(filename, DistributionKind.WHEEL, name, version, build, python, abi, platform, variant)


def _has_build(release: Sequence[str], project: str | None) -> bool:
    """Check whether the last part is a build number: it and the version before it begin with a digit, or with `v`.

    In `demo-v2-1.0`, `v2` belongs to the name if that is the name of the project.
    """
    if len(release) < 3 or not is_digits(release[-1][:1]):
        return False
    version = release[-2]
    is_of_name = project is not None and _comparable("-".join(release[:-1])) == _comparable(project)
    return is_digits(version[:1]) or (is_version(version) and not is_of_name)


def _has_variant(parts: Sequence[str]) -> bool:
    """Check whether the last part is the label of a variant.

    With a label, the Python tag is the fourth part from the end, in the place of the version or build.
    """
    return len(parts) > 5 and bool(_PYTHON_TAG.fullmatch(parts[-4]) and _VARIANT.fullmatch(parts[-1]))


def _split_valid(stem: str, project: str | None) -> tuple[str | None, str | None]:
    """Split `{name}-{version}` like `split_release`, but drop versions that are not valid by PEP 440."""
    name, version = split_release(stem, project)
    return name, version if version is not None and is_version(version) else None


def wheel_problems(filename: str) -> Iterator[str]:
    """Yield the reasons why versions of pip reject a wheel with this name, regardless of its content (PEP 427)."""
    if not filename.endswith(".whl"):
        yield "the filename does not end in .whl in small letters"
    elif not (match := _WHEEL.fullmatch(filename)) or not is_version(match["version"]):
        yield "the filename is not that of a wheel"


def split_release(stem: str, project: str | None = None) -> tuple[str | None, str | None]:
    """Split `{name}-{version}` into (name, version), or return (None, None) if no dash separates them.

    If `project` is known, the dash after it is used. Otherwise it is the last dash before a valid version, where
    `1.0-1` is an old spelling of a post-release, or else the last dash before a digit.
    """
    splits = list(_splits(stem))
    if project is not None:
        wanted = _comparable(project)
        fitting = [split for split in splits if _comparable(split[0]) == wanted]
        if fitting:
            return next((split for split in fitting if is_version(split[1])), fitting[-1])
    for name, version in reversed(splits):
        if is_version(version):
            before, _, maybe_version = name.rpartition("-")
            if is_digits(version) and before and "." in maybe_version and is_version(f"{maybe_version}-{version}"):
                return before, f"{maybe_version}-{version}"
            return name, version
    return next((split for split in reversed(splits) if is_digits(split[1][0])), (None, None))


def _splits(stem: str) -> Iterator[tuple[str, str]]:
    for match in _DASH.finditer(stem):
        name, version = stem[: match.start()], stem[match.end() :]
        if name and version:
            yield name, version


def _comparable(name: str) -> str:
    """Return the name in a comparable form. Old tools replaced runs of other characters, even spaces, by one dash."""
    return _OTHERS.sub("-", lower(name)).strip("-")
