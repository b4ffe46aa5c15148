"""The reader with broken and hostile files: it always returns a record, within its limits."""

import hashlib
import io
import struct
import tarfile
import zipfile
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pypi_assets.distributions.limits import MIB, ReadLimits
from pypi_assets.distributions.reader import read_distribution, read_path
from pypi_assets.distributions.record import AMBIGUOUS, DistributionKind, DistributionRecord, ErrorKind
from pypi_assets_tests.builders import make_egg, make_sdist, make_wheel, tar_bytes, zip_bytes
from pypi_assets_tests.distributions.small_archives import METADATA, PKG_INFO, SDIST, WHEEL, error_of, read
from pypi_assets_tests.examples import examples
from pypi_assets_tests.naming import mentions


def test_egg(tmp_path):
    path = make_egg(
        tmp_path,
        "my-demo",
        "1.0",
        files={"demo/__init__.py": "", "demo/_c.so": b"", "demo/_c.py": "", "old.pyc": b"", "EGG-INFO/x.py": ""}
        | {"start.pth": "", "demo/not.pth": ""},
        requires="six\n\n[tests]\npytest\n",
        requires_python=">=2.7",
        entry_points="[console_scripts]\ndemo = demo:main\n",
        top_level=["demo", "old"],
        platform="linux-x86_64",
    )
    assert path.name == "my_demo-1.0-py2.7-linux-x86_64.egg"
    record = read_path(path)
    assert record.error is None
    assert record.kind is DistributionKind.EGG
    assert (record.project, record.version, record.requires_python) == ("my-demo", "1.0", ">=2.7")
    assert record.requires_dist == ("six", 'pytest; extra == "tests"')
    assert record.provides_extra == ("tests",)
    assert record.entry_points == {"console_scripts": {"demo": "demo:main"}}
    assert record.modules == ("demo", "demo._c", "old")
    assert record.declared == ("demo", "old")
    assert record.start_up_paths == ("start.pth",)
    assert (record.license, record.project_urls, record.import_names) == (None, (), None)
    assert record.notes == ()


def test_egg_without_requires_txt_has_no_requirements(tmp_path):
    assert read_path(make_egg(tmp_path, "demo", "1.0")).requires_dist == ()


def test_egg_without_pkg_info_keeps_its_modules(tmp_path):
    path = tmp_path / "demo-1.0-py2.7.egg"
    path.write_bytes(zip_bytes({"demo.py": ""}))
    record = read_path(path)
    assert record.error is not None
    assert record.error.kind is ErrorKind.NO_METADATA
    assert (record.modules, record.requires_dist, record.version) == (("demo",), None, "1.0")


def test_zip_without_hash_is_read_in_ranges(tmp_path):
    path = make_wheel(tmp_path, "demo", "1.0", files={"demo.py": bytes(range(256)) * 4000})
    path.write_bytes(zip_bytes(dict(zip_members(path)), compression=zipfile.ZIP_STORED))

    class Counting(io.BytesIO):
        count = 0

        def read(self, size=-1):
            chunk = super().read(size)
            Counting.count += len(chunk)
            return chunk

    record = read_distribution(Counting(path.read_bytes()), path.name, hash_content=False).record
    assert record == replace(read_path(path), sha256=None, size=None)
    assert Counting.count < 100_000 < path.stat().st_size


def zip_members(path):
    with zipfile.ZipFile(path) as archive:
        return [(name, archive.read(name)) for name in archive.namelist()]


def test_missing_file_raises(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_path(tmp_path / WHEEL)


@pytest.mark.parametrize("filename", ["demo-1.0.win32.exe", "demo-1.0.linux-x86_64.tar.gz", "demo.txt"])
def test_unsupported_kinds_are_only_hashed(filename):
    record = read(b"MZ" * 1000, filename)
    assert error_of(record).kind is ErrorKind.UNSUPPORTED_KIND
    assert (record.sha256, record.size) == (hashlib.sha256(b"MZ" * 1000).hexdigest(), 2000)
    assert record.modules is None
    assert record.requires_dist is None


@pytest.mark.parametrize(("start", "name"), [(b"\x1f\x9d\x90", "compress"), (b"\x28\xb5\x2f\xfd", "zstd")])
def test_unsupported_compressions(start, name):
    error = error_of(read(start + bytes(100), "demo-1.0.tar.Z"))
    assert error.kind is ErrorKind.UNSUPPORTED_KIND
    assert mentions(error.text, name)


def test_content_that_is_not_an_archive(subtests: pytest.Subtests):
    for filename in [WHEEL, SDIST, "demo-1.0.zip", "demo-1.0-py2.7.egg"]:
        for content in [b"", b"<html>not found</html>" * 100, b"PK\x03\x04", b"\x1f\x8b\x08", bytes(2000)]:
            with subtests.test(content=content, filename=filename):
                record = read(content, filename)
                assert error_of(record).kind in {ErrorKind.CORRUPT_ARCHIVE, ErrorKind.NO_METADATA}
                assert (record.project, record.version, record.modules) == ("demo", "1.0", None)
                assert record.size == len(content)


def test_compression_is_detected_from_content():
    members = {"demo-1.0/PKG-INFO": PKG_INFO, "demo-1.0/demo.py": ""}
    for content in (tar_bytes(members, format="tar.xz"), tar_bytes(members, format="tar"), zip_bytes(members)):
        assert read(content, SDIST).modules == ("demo",)


def test_corrupt_metadata_member_keeps_the_modules(tmp_path):
    path = make_wheel(tmp_path, "demo", "1.0")
    content = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo(METADATA)
    position = info.header_offset + 30 + len(info.filename) + 5
    record = read(content[:position] + bytes([content[position] ^ 0xFF]) + content[position + 1 :], WHEEL)
    assert error_of(record).kind is ErrorKind.CORRUPT_ARCHIVE
    assert mentions(error_of(record).text, METADATA)
    assert record.modules == ("demo",)
    assert record.requires_dist is None


def test_encrypted_members_and_unknown_methods_are_corrupt():
    content = bytearray(zip_bytes({METADATA: PKG_INFO}, compression=zipfile.ZIP_STORED))
    central = content.index(b"PK\x01\x02")
    encrypted, strange = bytearray(content), bytearray(content)
    encrypted[central + 8] |= 1
    strange[central + 10] = 9
    assert mentions(error_of(read(encrypted, WHEEL)).text, METADATA)
    assert mentions(error_of(read(strange, WHEEL)).text, METADATA, 9)


def test_tar_links_outside_and_devices_are_ignored():
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, kind in (("PKG-INFO", tarfile.SYMTYPE), ("a.py", tarfile.LNKTYPE), ("b.py", tarfile.CHRTYPE)):
            info = tarfile.TarInfo(f"demo-1.0/{name}")
            info.type = kind
            info.linkname = "/etc/passwd"
            archive.addfile(info)
    record = read(buffer.getvalue(), SDIST)
    assert error_of(record).kind is ErrorKind.NO_METADATA
    assert record.modules is None
    assert {
        "ambiguous archive: 2 links that lead out of the archive are ignored: pip refuses it",
        "ambiguous archive: 1 members that are devices, or of no known kind, are ignored: pip refuses it",
    } < {note for note in record.notes if note.startswith(AMBIGUOUS)}


def test_wrong_size_is_detected():
    content = bytearray(zip_bytes({METADATA: PKG_INFO + " " * 100_000}))
    central = content.index(b"PK\x01\x02")
    content[central + 24 : central + 28] = struct.pack("<I", 10)
    record = read(content, WHEEL)
    assert error_of(record).kind is ErrorKind.CORRUPT_ARCHIVE


def test_endless_names_are_rejected():
    paths = [f"a{number}/" + "/".join("b" * 20) + "/c.py" for number in range(13_000)]
    record = read(zip_bytes(dict.fromkeys(paths, "") | {METADATA: PKG_INFO}), WHEEL)
    assert error_of(record).kind is ErrorKind.LIMIT_EXCEEDED
    assert mentions(error_of(record).text, 250000)
    assert record.modules is None
    long_names = tar_bytes({f"{number}/{'x' * 1000}": "" for number in range(20)})
    assert error_of(read(long_names, SDIST, max_directory_bytes=10_000)).kind is ErrorKind.LIMIT_EXCEEDED


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    folder = tmp_path_factory.mktemp("originals")
    files = {"demo/__init__.py": "x = 1\n" * 20, "demo/a.py": "", "demo.egg-info/requires.txt": "a\n[b:os_name]\nc\n"}
    files["pyproject.toml"] = '[project]\nname = "demo"\n[tool.setuptools]\npackages = ["demo"]\n'
    files["setup.cfg"] = "[options]\npackages = demo\n"
    paths = [make_wheel(folder, "demo", "1.0", requires_dist=["a"]), make_egg(folder, "demo", "1.0", requires="a")]
    paths += [make_sdist(folder, "demo", "1.0", files=files, format=suffix) for suffix in FORMATS]
    return [(path.name, path.read_bytes()) for path in paths]


FORMATS = ["tar", "tar.gz", "tar.bz2", "tar.xz", "zip"]


SMALL = ReadLimits(
    max_file_bytes=MIB, max_metadata_bytes=MIB, max_inflated_bytes=8 * MIB, max_members=1000, seconds=5.0
)


def check(record: DistributionRecord, content: bytes) -> None:
    assert record.project is not None
    if record.sha256 is not None:
        assert (record.sha256, record.size) == (hashlib.sha256(content).hexdigest(), len(content))
    texts = [
        *record.notes,
        *(record.modules or ()),
        *(record.requires_dist or ()),
        record.project,
        record.version or "",
    ]
    assert all(text.isprintable() for text in texts)


@settings(max_examples=examples(150), deadline=None)
@given(data=st.data())
def test_mutated_archives_never_raise(originals, data):
    filename, content = data.draw(st.sampled_from(originals))
    mutated = bytearray(content)
    for _ in range(data.draw(st.integers(1, 8))):
        position = data.draw(st.integers(0, len(mutated) - 1))
        mutated[position] = data.draw(st.integers(0, 255))
    mutated = mutated[: data.draw(st.just(len(mutated)) | st.integers(0, len(mutated)))]
    check(read_distribution(io.BytesIO(mutated), filename, limits=SMALL).record, bytes(mutated))


@settings(max_examples=examples(100), deadline=None)
@given(st.sampled_from([WHEEL, SDIST, "demo-1.0.zip", "demo-1.0-py2.7.egg"]), st.binary(max_size=2000))
@example(SDIST, b"\x1f\x8b" + bytes(30))
@example(SDIST, b"\xfd7zXZ\0" + bytes(30))
@example(SDIST, b"BZh9" + bytes(30))
def test_random_bytes_never_raise(filename, content):
    check(read_distribution(io.BytesIO(content), filename, limits=SMALL).record, content)


TEXT = st.text(max_size=60) | st.sampled_from(["", "[project]", "[[", "name = 1", "a\n[:]\n;\n@", "]\n[x:y"])


@settings(max_examples=examples(100), deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(
            ["PKG-INFO", "pyproject.toml", "setup.cfg", "demo.py"]
            + [f"d.egg-info/{name}" for name in ("PKG-INFO", "requires.txt", "top_level.txt", "entry_points.txt")]
        ),
        TEXT | st.binary(max_size=40),
    )
)
@example({"pyproject.toml": '[project]\nname = "x"\ndependencies = [1, "a"]\ndynamic = 3\nscripts = 1\n'})
@example({"pyproject.toml": "tool = 1\n[build-system]\nbuild-backend = []\n"})
@example({"pyproject.toml": "x = " + "[" * 100_000})
@example({"pyproject.toml": "x = " + "1" * 5000})
@example({"setup.cfg": "[options]\npackages = %(x)s\n  y\n[options\n", "PKG-INFO": "Metadata-Version: 2.x\n"})
def test_random_metadata_files_never_raise(files):
    content = tar_bytes({f"demo-1.0/{name}": text for name, text in files.items()}, format="tar")
    check(read_distribution(io.BytesIO(content), SDIST, limits=SMALL).record, content)


@pytest.mark.parametrize("build", [make_wheel, make_sdist, make_egg])
def test_code_of_a_distribution_is_never_run(build, tmp_path, monkeypatch):
    """Check rule 8: reading has no effect of the code, build settings or metadata."""
    monkeypatch.chdir(tmp_path)
    tripwire = f"open({str(tmp_path / 'was-run')!r}, 'w').close()\nraise SystemExit(1)\n"
    files = {
        "demo/__init__.py": tripwire,
        "setup.py": tripwire,
        "conftest.py": tripwire,
        "backend.py": tripwire,
        "pyproject.toml": "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n",
        "setup.cfg": "[metadata]\nversion = attr: demo.__version__\n",
    }
    path = build(tmp_path, "demo", "1.0", files=files)
    before = sorted(tmp_path.iterdir())
    record = read_path(path)
    assert record.error is None
    assert "demo" in (record.modules or ())
    assert sorted(tmp_path.iterdir()) == before
