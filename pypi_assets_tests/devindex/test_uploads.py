"""Metadata of uploaded files comes from the file, otherwise from its name, otherwise from the arguments."""

import hashlib
from pathlib import Path

import pytest

from pypi_assets.devindex.devindex_errors import OperationRefusedError
from pypi_assets.devindex.uploads import Upload, normal_version, read_upload
from pypi_assets_tests.builders import core_metadata, make_egg, make_sdist, make_wheel
from pypi_assets_tests.naming import naming

AT = "2026-01-02T03:04:05.000006Z"


def read(path: Path, project: str | None = None, version: str | None = None) -> Upload:
    return read_upload(path, project=project, version=version, uploaded_at=AT)


def test_metadata_of_a_wheel(tmp_path: Path) -> None:
    path = make_wheel(tmp_path, "Demo.Pkg", "1.0", requires_python=">=3.8", tag="cp311-abi3-linux_x86_64", build="2")
    upload = read(path)
    content = path.read_bytes()
    metadata = core_metadata("Demo.Pkg", "1.0", requires_python=">=3.8").encode()
    assert (upload.project, upload.version, upload.core_metadata) == ("Demo.Pkg", "1.0", metadata)
    file = upload.file
    assert (file.packagetype, file.python_version, file.requires_python) == ("bdist_wheel", "cp311", ">=3.8")
    assert file.size == len(content)
    assert file.sha256 == hashlib.sha256(content).hexdigest()
    assert file.core_metadata_sha256 == hashlib.sha256(metadata).hexdigest()
    assert file.uploaded_at == AT
    digest = hashlib.blake2b(content, digest_size=32).hexdigest()
    assert file.path == f"{digest[:2]}/{digest[2:4]}/{digest[4:]}/{path.name}"


@pytest.mark.parametrize("suffix", ["tar.gz", "tar.bz2", "tar.xz", "tgz", "zip"])
def test_sdist_has_requires_python_but_no_core_metadata(tmp_path: Path, suffix: str) -> None:
    upload = read(make_sdist(tmp_path, "Demo.Pkg", "1.0", requires_python=">=3.9", format=suffix))
    assert (upload.project, upload.version, upload.core_metadata) == ("Demo.Pkg", "1.0", None)
    assert (upload.file.packagetype, upload.file.python_version) == ("sdist", "source")
    assert (upload.file.requires_python, upload.file.core_metadata_sha256) == (">=3.9", None)


def test_metadata_of_an_egg(tmp_path: Path) -> None:
    upload = read(make_egg(tmp_path, "demo", "1.0", python="py3.6", requires_python=">=3.6"))
    assert (upload.project, upload.version) == ("demo", "1.0")
    assert (upload.file.packagetype, upload.file.python_version) == ("bdist_egg", "3.6")
    assert (upload.file.requires_python, upload.file.core_metadata_sha256) == (">=3.6", None)


def test_unreadable_file_gets_metadata_from_its_name(tmp_path: Path, subtests: pytest.Subtests) -> None:
    cases = [
        ("demo_pkg-1.0-py2.py3-none-any.whl", "demo_pkg", "1.0", "bdist_wheel", "py2.py3"),
        ("demo_pkg-1.0-1-py3-none-any.whl", "demo_pkg", "1.0", "bdist_wheel", "py3"),
        ("demo-pkg-1.0.tar.gz", "demo-pkg", "1.0", "sdist", "source"),
        ("demo-1.0.tar.Z", "demo", "1.0", "sdist", "source"),
        ("demo-1.0-py2.7-linux-x86_64.egg", "demo", "1.0", "bdist_egg", "2.7"),
        ("demo-1.0.win32-py2.7.exe", "demo", "1.0", "bdist_wininst", "2.7"),
        ("demo-1.0.win-amd64.msi", "demo", "1.0", "bdist_msi", "any"),
        ("demo-pkg-1.0-1.noarch.rpm", "demo-pkg", "1.0", "bdist_rpm", "any"),
        ("demo-1.0.dmg", "demo", "1.0", "bdist_dmg", "any"),
        ("demo-1.0.linux-x86_64.tar.gz", "demo", "1.0", "bdist_dumb", "any"),
    ]
    for filename, project, version, packagetype, python in cases:
        with subtests.test(filename=filename):
            path = tmp_path / filename
            path.write_bytes(b"PK\x03\x04 and then nothing of the kind")
            upload = read(path)
            assert (upload.project, upload.version) == (project, version)
            assert (upload.file.packagetype, upload.file.python_version) == (packagetype, python)
            assert (upload.core_metadata, upload.file.core_metadata_sha256) == (None, None)


def test_truncated_wheel_has_no_core_metadata(tmp_path: Path) -> None:
    path = make_wheel(tmp_path, "demo", "1.0")
    path.write_bytes(path.read_bytes()[:-40])
    assert read(path).core_metadata is None


def test_project_and_version_can_be_given(tmp_path: Path) -> None:
    path = tmp_path / "odd.whl"
    path.write_bytes(b"odd")
    upload = read(path, "demo", "1.0")
    assert (upload.project, upload.version, upload.file.packagetype) == ("demo", "1.0", "bdist_wheel")
    assert read(make_wheel(tmp_path, "demo", "1.0"), "other", "2.0").project == "other"


def test_file_of_unknown_project_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "odd.whl"
    path.write_bytes(b"odd")
    with pytest.raises(OperationRefusedError, match=naming("odd.whl")):
        read(path)


def test_invalid_name_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(OperationRefusedError, match=naming("no name!")):
        read(make_wheel(tmp_path, "demo", "1.0"), "no name!")


def test_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "demo-1.0.tar.gz")


def test_dist_info_folder_matching_the_filename_is_used(tmp_path: Path) -> None:
    files = {"other-2.0.dist-info/METADATA": core_metadata("other", "2.0")}
    assert read(make_wheel(tmp_path, "demo", "1.0", files=files)).project == "demo"


@pytest.mark.parametrize(
    ("version", "normal"), [("1.0-beta", "1.0b0"), ("v1.0", "1.0"), ("not a version", "not a version")]
)
def test_normal_version(version: str, normal: str) -> None:
    assert normal_version(version) == normal
