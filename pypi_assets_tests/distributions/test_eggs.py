"""Eggs: PKG-INFO and requires.txt."""

from pypi_assets.distributions.reader import read_path
from pypi_assets.distributions.record import DistributionKind, ErrorKind
from pypi_assets_tests.builders import make_egg, zip_bytes


def test_a_whole_egg(tmp_path):
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


def test_an_egg_without_requires_txt_requires_nothing(tmp_path):
    assert read_path(make_egg(tmp_path, "demo", "1.0")).requires_dist == ()


def test_an_egg_without_pkg_info_keeps_its_modules(tmp_path):
    path = tmp_path / "demo-1.0-py2.7.egg"
    path.write_bytes(zip_bytes({"demo.py": ""}))
    record = read_path(path)
    assert record.error is not None
    assert record.error.kind is ErrorKind.NO_METADATA
    assert (record.modules, record.requires_dist, record.version) == (("demo",), None, "1.0")
