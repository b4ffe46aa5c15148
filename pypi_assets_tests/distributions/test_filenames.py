"""The parts of filenames, including historic ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.distributions.filenames import parse_filename, wheel_problems
from pypi_assets.distributions.record import DistributionKind as Kind
from pypi_assets.distributions.record import FilenameParts


@pytest.mark.parametrize(
    ("filename", "expected"),
    [
        ("demo-1.0-py3-none-any.whl", ("demo", "1.0", None, "py3", "none", "any")),
        ("demo-1.0-2abc-cp311-abi3-win32.whl", ("demo", "1.0", "2abc", "cp311", "abi3", "win32")),
        ("Demo.Pkg-1.0rc1-py2.py3-none-any.whl", ("Demo.Pkg", "1.0rc1", None, "py2.py3", "none", "any")),
        ("a-b-1.0-py3-none-any.whl", ("a-b", "1.0", None, "py3", "none", "any")),
        ("a-b-1.0-1-py3-none-any.whl", ("a-b", "1.0", "1", "py3", "none", "any")),
        ("demo-v1.2-10-py3-none-any.whl", ("demo", "v1.2", "10", "py3", "none", "any")),
        ("demo-v1.2-py3-none-any.whl", ("demo", "v1.2", None, "py3", "none", "any")),
        ("demo-1.0.whl", ("demo", "1.0", None, None, None, None)),
        ("demo.whl", (None, None, None, None, None, None)),
    ],
)
def test_wheels(filename, expected):
    assert parse_filename(filename) == FilenameParts(filename, Kind.WHEEL, *expected)


def test_project_decides_between_a_build_and_a_version_after_a_dash():
    for project, expected in (("demo", ("demo", "v2", "1.0")), ("demo-v2", ("demo-v2", "1.0", None))):
        parts = parse_filename("demo-v2-1.0-py3-none-any.whl", project)
        assert (parts.project, parts.version, parts.build) == expected


def test_variant_wheel_has_a_label_after_the_platform(subtests: pytest.Subtests):
    cases = [
        ("demo-2.0-py3-none-any-x8664v3.whl", ("demo", "2.0", None, "py3", "none", "any", "x8664v3")),
        (
            "demo-2.0-1-cp313-cp313-manylinux_2_28_x86_64-cu128.whl",
            ("demo", "2.0", "1", "cp313", "cp313", "manylinux_2_28_x86_64", "cu128"),
        ),
        ("demo-2.0-py2.py3-none-any-00000000.whl", ("demo", "2.0", None, "py2.py3", "none", "any", "00000000")),
        ("a-b-2.0-py3-none-any-null.whl", ("a-b", "2.0", None, "py3", "none", "any", "null")),
        ("demo-2.0-py3-none-any-Label.whl", ("demo", None, None, "none", "any", "Label", None)),
    ]
    for filename, expected in cases:
        with subtests.test(filename=filename):
            assert parse_filename(filename) == FilenameParts(filename, Kind.WHEEL, *expected)


def test_nonstandard_wheel_name_has_no_version(subtests: pytest.Subtests):
    for stem in ("demo-2.0-foo-bar", "demo-2.0-x-py3-none-any", "demo-2.0-py3", "demo-2.0-py3-none-any-too-many"):
        with subtests.test(stem=stem):
            assert parse_filename(f"{stem}.whl", "demo").version is None


@pytest.mark.parametrize("suffix", ["tar.gz", "tgz", "tar.bz2", "tar.xz", "tar.Z", "zip", "ZIP"])
def test_sdist_suffixes(suffix):
    parts = parse_filename(f"demo-1.0.{suffix}")
    assert (parts.kind, parts.project, parts.version) == (Kind.SDIST, "demo", "1.0")


def test_dash_between_name_and_version(subtests: pytest.Subtests):
    cases = [
        ("a-b-1.0", None, ("a-b", "1.0")),
        ("a-b-1.0", "a-b", ("a-b", "1.0")),
        ("a-b-1.0", "A.B", ("a-b", "1.0")),
        ("a_b-1.0", "a-b", ("a_b", "1.0")),
        ("a-2-b1", "a-2", ("a-2", "b1")),
        ("a-2-b1", "a", ("a", "2-b1")),
        ("a-2-3", "a", ("a", "2-3")),
        ("a-2-3", "a-2", ("a-2", "3")),
        ("demo-1.0-1", None, ("demo", "1.0-1")),
        ("demo-2.0dev-20090101", None, ("demo", "2.0dev-20090101")),
        ("demo-0.1-SNAPSHOT", None, ("demo", "0.1-SNAPSHOT")),
        ("demo-0.1-SNAPSHOT", "demo", ("demo", "0.1-SNAPSHOT")),
        ("Foo-Bar-1.0", "Foo Bar", ("Foo-Bar", "1.0")),
        ("demo-1.0", "other", ("demo", "1.0")),
        ("demo-1.0+local.2", None, ("demo", "1.0+local.2")),
        ("demo-v1.0", None, ("demo", "v1.0")),
        ("demo-latest", None, (None, None)),
        ("demo", "demo", (None, None)),
        ("-1.0", None, (None, None)),
    ]
    for stem, project, expected in cases:
        with subtests.test(stem=stem, project=project):
            parts = parse_filename(f"{stem}.tar.gz", project)
            assert (parts.project, parts.version) == expected


def test_other_kinds(subtests: pytest.Subtests):
    cases = [
        ("demo-1.0-py2.7.egg", FilenameParts("", Kind.EGG, "demo", "1.0", python="py2.7")),
        (
            "zope.demo-1.0-py2.7-linux-x86_64.egg",
            FilenameParts("", Kind.EGG, "zope.demo", "1.0", python="py2.7", platform="linux-x86_64"),
        ),
        ("demo-1.0.egg", FilenameParts("", Kind.EGG, "demo", "1.0")),
        ("demo-1.0.win32.exe", FilenameParts("", Kind.WININST, "demo", "1.0", platform="win32")),
        (
            "my-demo-1.0.win-amd64-py3.4.exe",
            FilenameParts("", Kind.WININST, "my-demo", "1.0", python="py3.4", platform="win-amd64"),
        ),
        ("demo-1.0.win32-py2.7.msi", FilenameParts("", Kind.MSI, "demo", "1.0", python="py2.7", platform="win32")),
        ("demo-1.0-1.noarch.rpm", FilenameParts("", Kind.RPM, "demo", "1.0", build="1", platform="noarch")),
        ("python-demo_1.0-1_all.deb", FilenameParts("", Kind.DEB, "python-demo", "1.0-1", platform="all")),
        (
            "demo-1.0-py2.7-macosx10.5.dmg",
            FilenameParts("", Kind.DMG, "demo", "1.0", python="py2.7", platform="macosx10.5"),
        ),
        ("demo-1.0.linux-x86_64.tar.gz", FilenameParts("", Kind.DUMB, "demo", "1.0", platform="linux-x86_64")),
        (
            "demo-1.0.macosx-10.9-x86_64.tar.gz",
            FilenameParts("", Kind.DUMB, "demo", "1.0", platform="macosx-10.9-x86_64"),
        ),
        ("demo-1.0.win-amd64.zip", FilenameParts("", Kind.DUMB, "demo", "1.0", platform="win-amd64")),
        ("demo.linux-1.0.tar.gz", FilenameParts("", Kind.SDIST, "demo.linux", "1.0")),
        ("demo-1.0.tar.gz.asc", FilenameParts("", Kind.UNKNOWN)),
        ("", FilenameParts("", Kind.UNKNOWN)),
    ]
    for filename, expected in cases:
        with subtests.test(filename=filename):
            parts = parse_filename(filename)
            assert parts.filename == filename
            assert FilenameParts("", *[getattr(parts, name) for name in FilenameParts.__slots__[1:]]) == expected


@pytest.mark.parametrize("filename", ["demo\x1b[2J-1.0.tar.gz", "../demo-1.0.tar.gz", "d-1\ud800.zip", "a\\b-1.whl"])
def test_invalid_filenames_are_unknown(filename):
    parts = parse_filename(filename)
    assert parts.kind is Kind.UNKNOWN
    assert parts.project is None
    assert "\ufffd" in parts.filename


SUFFIXES = st.sampled_from([".whl", ".tar.gz", ".zip", ".egg", ".exe", ".msi", ".rpm", ".deb", ".dmg", ""])


@given(st.text() | st.text("ab-_.019+ \x00\x1f", max_size=40), SUFFIXES, st.none() | st.text(max_size=5))
def test_any_text_is_parsed_without_control_characters(stem, suffix, project):
    parts = parse_filename(stem + suffix, project)
    for name in FilenameParts.__slots__:
        value = getattr(parts, name)
        assert value is None or value.isprintable()


def test_thousands_of_digits_are_not_a_version():
    assert parse_filename(f"demo-{'1' * 5000}.tar.gz").kind is Kind.UNKNOWN
    assert parse_filename(f"demo-{'1' * 900}.tar.gz").version == "1" * 900


def test_wheel_names_rejected_by_some_pip(subtests: pytest.Subtests):
    cases = [
        ("demo-1.0-py3-none-any.whl", False),
        ("De.mo_x-1!1.0+a.1-1x-cp39.cp310-abi3-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", False),
        ("demo-1.0-py3-none-any.WHL", True),
        ("demo-1.0.whl", True),
        ("demo.whl", True),
        ("demo-x-py3-none-any.whl", True),
        ("de__mo-1.0-py3-none-any.whl", True),
        ("-1.0-py3-none-any.whl", True),
        ("demo-1.0-x1-py3-none-any.whl", True),
        ("demo-1.0-py3-none-.any.whl", True),
        ("demo-1.0 -py3-none-any.whl", True),
        ("demo-1.0-1-2-py3-none-any.whl", True),
    ]
    for filename, is_refused in cases:
        with subtests.test(filename=filename):
            assert bool(list(wheel_problems(filename))) == is_refused
