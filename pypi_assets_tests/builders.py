"""Build small but real wheels, sdists and eggs for tests. The same arguments always produce the same bytes."""

import base64
import bz2
import gzip
import hashlib
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

Content = bytes | str

TAR_COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "tar": lambda data: data,
    "tar.gz": lambda data: gzip.compress(data, mtime=0),
    "tgz": lambda data: gzip.compress(data, mtime=0),
    "tar.bz2": bz2.compress,
    "tar.xz": lzma.compress,
    "tar.lzma": partial(lzma.compress, format=lzma.FORMAT_ALONE),
}


def as_bytes(content: Content) -> bytes:
    return content.encode() if isinstance(content, str) else content


def filename_name(name: str) -> str:
    """Return a project's name as PEP 427 and PEP 625 write it in filenames."""
    return name.replace("-", "_").replace(".", "_").lower()


def core_metadata(
    name: str,
    version: str,
    *,
    metadata_version: str = "2.1",
    requires_dist: Iterable[str] = (),
    requires_python: str | None = None,
    provides_extra: Iterable[str] = (),
    summary: str | None = None,
    extra_headers: Iterable[tuple[str, str]] = (),
    description: str = "",
) -> str:
    """Return the text of a METADATA or PKG-INFO file."""
    headers = [("Metadata-Version", metadata_version), ("Name", name), ("Version", version)]
    if summary is not None:
        headers.append(("Summary", summary))
    if requires_python is not None:
        headers.append(("Requires-Python", requires_python))
    headers += [("Requires-Dist", requirement) for requirement in requires_dist]
    headers += [("Provides-Extra", extra) for extra in provides_extra]
    headers += extra_headers
    return "".join(f"{key}: {value}\n" for key, value in headers) + "\n" + description


def zip_bytes(members: Mapping[str, Content], *, compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a zip archive of `members` in the given order. A name that ends in `/` is a folder."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = compression
            info.external_attr = 0o644 << 16
            archive.writestr(info, as_bytes(content))
    return buffer.getvalue()


def tar_bytes(members: Mapping[str, Content], *, format: str = "tar.gz") -> bytes:  # noqa: A002 - tarfile's own word
    """Return a tar archive of `members` in the given order, compressed as the suffix `format` requires.

    A name that ends in `/` is a folder.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            if name.endswith("/"):
                info.type = tarfile.DIRTYPE
                archive.addfile(info)
            else:
                info.size = len(as_bytes(content))
                archive.addfile(info, io.BytesIO(as_bytes(content)))
    return TAR_COMPRESSORS[format](buffer.getvalue())


def make_wheel(
    folder: Path,
    name: str,
    version: str,
    *,
    files: Mapping[str, Content] | None = None,
    requires_dist: Iterable[str] = (),
    requires_python: str | None = None,
    provides_extra: Iterable[str] = (),
    summary: str | None = None,
    tag: str = "py3-none-any",
    build: str | None = None,
    entry_points: str | None = None,
    top_level: Iterable[str] | None = None,
    metadata: Content | None = None,
    extra_headers: Iterable[tuple[str, str]] = (),
    filename: str | None = None,
) -> Path:
    """Write a wheel into `folder` and return its path. Without `files`, it contains one module named like the project.

    `metadata` replaces the generated METADATA, and `filename` the generated filename.
    """
    stem = f"{filename_name(name)}-{version}"
    dist_info = f"{stem}.dist-info"
    members = dict(files) if files is not None else {f"{filename_name(name)}.py": f'VERSION = "{version}"\n'}
    if metadata is None:
        metadata = core_metadata(
            name,
            version,
            requires_dist=requires_dist,
            requires_python=requires_python,
            provides_extra=provides_extra,
            summary=summary,
            extra_headers=extra_headers,
        )
    members[f"{dist_info}/METADATA"] = metadata
    members[f"{dist_info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: builders\nRoot-Is-Purelib: true\nTag: {tag}\n"
    if entry_points is not None:
        members[f"{dist_info}/entry_points.txt"] = entry_points
    if top_level is not None:
        members[f"{dist_info}/top_level.txt"] = "".join(f"{line}\n" for line in top_level)
    members[f"{dist_info}/RECORD"] = "".join(_record_line(*member) for member in members.items()) + (
        f"{dist_info}/RECORD,,\n"
    )
    path = folder / (filename or "-".join(part for part in (stem, build, tag) if part) + ".whl")
    path.write_bytes(zip_bytes(members))
    return path


def _record_line(name: str, content: Content) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(as_bytes(content)).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(as_bytes(content))}\n"


def make_sdist(
    folder: Path,
    name: str,
    version: str,
    *,
    files: Mapping[str, Content] | None = None,
    pkg_info: bool | Content = True,
    metadata_version: str = "2.1",
    requires_dist: Iterable[str] = (),
    requires_python: str | None = None,
    provides_extra: Iterable[str] = (),
    extra_headers: Iterable[tuple[str, str]] = (),
    format: str = "tar.gz",  # noqa: A002 - as in setup.py sdist --formats
    top: str | None = None,
    filename: str | None = None,
) -> Path:
    """Write an sdist into `folder` and return its path. Without `files`, it contains one module named like the project.

    `pkg_info` is True for a generated PKG-INFO, False for no PKG-INFO, or the content of the file. `top` is the folder
    that contains all members, `{name}-{version}` by default.
    """
    stem = f"{filename_name(name)}-{version}"
    top = stem if top is None else top
    members = {} if pkg_info is False else {"PKG-INFO": pkg_info if not isinstance(pkg_info, bool) else ""}
    if pkg_info is True:
        members["PKG-INFO"] = core_metadata(
            name,
            version,
            metadata_version=metadata_version,
            requires_dist=requires_dist,
            requires_python=requires_python,
            provides_extra=provides_extra,
            extra_headers=extra_headers,
        )
    members |= dict(files) if files is not None else {f"{filename_name(name)}.py": f'VERSION = "{version}"\n'}
    members = {f"{top}/{member}" if top else member: content for member, content in members.items()}
    path = folder / (filename or f"{stem}.{format}")
    path.write_bytes(zip_bytes(members) if format == "zip" else tar_bytes(members, format=format))
    return path


def make_egg(
    folder: Path,
    name: str,
    version: str,
    *,
    files: Mapping[str, Content] | None = None,
    requires: str | None = None,
    requires_python: str | None = None,
    entry_points: str | None = None,
    top_level: Iterable[str] | None = None,
    pkg_info: Content | None = None,
    python: str = "py2.7",
    platform: str | None = None,
    filename: str | None = None,
) -> Path:
    """Write a zipped egg into `folder` and return its path. `requires` is the text of its requires.txt."""
    escaped = name.replace("-", "_")
    members = dict(files) if files is not None else {f"{filename_name(name)}.py": f'VERSION = "{version}"\n'}
    members["EGG-INFO/PKG-INFO"] = (
        core_metadata(name, version, metadata_version="1.1", requires_python=requires_python)
        if pkg_info is None
        else pkg_info
    )
    if requires is not None:
        members["EGG-INFO/requires.txt"] = requires
    if entry_points is not None:
        members["EGG-INFO/entry_points.txt"] = entry_points
    if top_level is not None:
        members["EGG-INFO/top_level.txt"] = "".join(f"{line}\n" for line in top_level)
    path = folder / (filename or "-".join(part for part in (escaped, version, python, platform) if part) + ".egg")
    path.write_bytes(zip_bytes(members))
    return path
