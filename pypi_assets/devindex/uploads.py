"""Read the properties of an uploaded file that an index stores: names, digests and core metadata.

A file with unreadable metadata is uploaded without core metadata, because a crawler must be tested with such files. The
data that a crawler reads from a distribution does not belong here; see pypi_assets.distributions.
"""

import hashlib
import lzma
import re
import struct
import tarfile
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

from packaging.metadata import RawMetadata, parse_email
from packaging.utils import InvalidName, canonicalize_name
from packaging.version import InvalidVersion, Version

from pypi_assets.devindex.devindex_errors import OperationRefusedError

MAX_METADATA_BYTES = 16 * 1024**2

_PROJECT_VERSION = r"(?P<project>.+)-(?P<version>[^-]+)"
_WINDOWS = r"(?P<project>.+?)-(?P<version>[^-]+)\.(win32|win-amd64)(-py(?P<python>[\d.]+))?"
# the first match counts: suffixes of the filename, the index's package type, the parts of its stem, the default Python
_KINDS = (
    (
        (".whl",),
        "bdist_wheel",
        r"(?P<project>[^-]+)-(?P<version>[^-]+)(-\d[^-]*)?-(?P<python>[^-]+)-[^-]+-[^-]+",
        "py3",
    ),
    ((".egg",), "bdist_egg", r"(?P<project>[^-]+)-(?P<version>[^-]+)(-py(?P<python>[^-]+)(-.+)?)?", "any"),
    ((".exe",), "bdist_wininst", _WINDOWS, "any"),
    ((".msi",), "bdist_msi", _WINDOWS, "any"),
    ((".rpm",), "bdist_rpm", r"(?P<project>.+)-(?P<version>[^-]+)-[^-]+", "any"),
    ((".dmg",), "bdist_dmg", _PROJECT_VERSION, "any"),
    ((".linux-x86_64.tar.gz", ".linux-i686.tar.gz", ".deb"), "bdist_dumb", _PROJECT_VERSION, "any"),
    (
        (".tar.gz", ".tar.bz2", ".tar.xz", ".tar.Z", ".tar", ".tgz", ".zip"),
        "sdist",
        _PROJECT_VERSION,
        "source",
    ),
)
_UNREADABLE = (
    zipfile.BadZipFile,
    tarfile.TarError,
    lzma.LZMAError,
    zlib.error,
    EOFError,
    OSError,
    RuntimeError,  # an encrypted zip member, or an unknown compression
    struct.error,
    ValueError,
)


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """A file as the index stores it. `size` is in bytes, `uploaded_at` is ISO 8601 in UTC, ending in Z."""

    filename: str
    packagetype: str
    python_version: str
    size: int
    sha256: str
    md5: str
    blake2b_256: str
    requires_python: str | None
    core_metadata_sha256: str | None
    uploaded_at: str

    @property
    def path(self) -> str:
        """Return the file's path below `files/`, and below `/packages/` in its URL."""
        digest = self.blake2b_256
        return f"{digest[:2]}/{digest[2:4]}/{digest[4:]}/{self.filename}"


@dataclass(frozen=True, slots=True)
class Upload:
    """A file to add; `core_metadata` is a wheel's METADATA, which is served next to the wheel."""

    project: str
    version: str
    file: UploadedFile
    core_metadata: bytes | None


@dataclass(frozen=True, slots=True)
class _Named:
    """The parts of a filename."""

    packagetype: str
    python_version: str
    project: str | None
    version: str | None


def read_upload(path: Path, *, project: str | None, version: str | None, uploaded_at: str) -> Upload:
    """Return the upload of the file at `path`.

    Project and version are the given ones, else they come from the metadata, else from the filename. Raises
    OperationRefusedError if none of these has them, and OSError if the file cannot be read.
    """
    named = _read_filename(path.name)
    raw = read_metadata(path)
    metadata = parse_metadata(raw) if raw is not None else RawMetadata()
    project = project or metadata.get("name") or named.project
    version = version or metadata.get("version") or named.version
    if not project or not version:
        raise OperationRefusedError(
            f"{path.name}: neither the file nor its name has the project and the version; pass --project and --version"
        )
    try:
        canonicalize_name(project, validate=True)
    except InvalidName as error:
        raise OperationRefusedError(
            f"{path.name}: {project!r} is not a valid project name; pass another one with --project"
        ) from error
    sha256, md5, blake2b = hashlib.sha256(), hashlib.md5(usedforsecurity=False), hashlib.blake2b(digest_size=32)
    with path.open("rb") as stream:
        while block := stream.read(1024**2):
            for digest in (sha256, md5, blake2b):
                digest.update(block)
        size = stream.tell()
    is_wheel = path.name.endswith(".whl")
    file = UploadedFile(
        filename=path.name,
        packagetype=named.packagetype,
        python_version=named.python_version,
        size=size,
        sha256=sha256.hexdigest(),
        md5=md5.hexdigest(),
        blake2b_256=blake2b.hexdigest(),
        requires_python=metadata.get("requires_python"),
        core_metadata_sha256=hashlib.sha256(raw).hexdigest() if is_wheel and raw is not None else None,
        uploaded_at=uploaded_at,
    )
    return Upload(project, normal_version(version), file, raw if is_wheel else None)


def normal_version(version: str) -> str:
    """Return `version` in the normal form of PEP 440, or unchanged if it is not valid."""
    try:
        return str(Version(version))
    except InvalidVersion:
        return version


def parse_metadata(raw: bytes) -> RawMetadata:
    """Return the fields of a METADATA or PKG-INFO file that can be parsed."""
    return parse_email(raw)[0]


def read_metadata(path: Path) -> bytes | None:
    """Return the bytes of a distribution's METADATA or PKG-INFO, or None if there is none or it cannot be read."""
    name = path.name
    try:
        if name.endswith(".whl"):
            stem = "-".join(name.split("-")[:2])
            return _read_zip(path, re.compile(r"[^/]+\.dist-info/METADATA"), f"{stem}.dist-info/METADATA")
        if name.endswith(".egg"):
            return _read_zip(path, re.compile(r"EGG-INFO/PKG-INFO"))
        if name.endswith(".zip"):
            return _read_zip(path, re.compile(r"[^/]+/PKG-INFO"))
        return _read_tar(path, re.compile(r"(\./)?[^/]+/PKG-INFO")) if ".tar" in name or name.endswith(".tgz") else None
    except _UNREADABLE:
        return None


def _read_zip(path: Path, pattern: re.Pattern[str], preferred: str | None = None) -> bytes | None:
    with zipfile.ZipFile(path) as archive:
        found = [member for member in archive.infolist() if pattern.fullmatch(member.filename)]
        member = next((one for one in found if one.filename == preferred), found[0] if len(found) == 1 else None)
        if member is None or member.file_size > MAX_METADATA_BYTES:
            return None
        return archive.read(member)


def _read_tar(path: Path, pattern: re.Pattern[str]) -> bytes | None:
    with tarfile.open(path) as archive:
        for member in archive:
            if member.isfile() and pattern.fullmatch(member.name) and member.size <= MAX_METADATA_BYTES:
                stream = archive.extractfile(member)
                return stream.read() if stream else None
    return None


def _read_filename(filename: str) -> _Named:
    for suffixes, packagetype, pattern, python in _KINDS:
        if suffix := next((one for one in suffixes if filename.endswith(one)), None):
            match = re.fullmatch(pattern, filename.removesuffix(suffix))
            found = match.groupdict() if match else {}
            return _Named(packagetype, found.get("python") or python, found.get("project"), found.get("version"))
    return _Named("sdist", "source", None, None)
