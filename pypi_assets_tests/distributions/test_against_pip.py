"""The comparison with pip finds what differs, and nothing where the record is right."""

import io
import sys

import pytest

from pypi_assets.distributions import against_pip
from pypi_assets.distributions.against_pip import NoPipError, compare, compare_sdist, compare_wheel
from pypi_assets.distributions.reader import read_path
from pypi_assets_tests.builders import make_sdist, make_wheel
from pypi_assets_tests.distributions.hostile_tars import EVIL_INFO, link, tar, tar_member

FILES = {"demo/__init__.py": "", "demo/part.py": "", "start.pth": "import demo\n"}
ENTRY_POINTS = "[console_scripts]\ndemo = demo:main\n[group]\nname = demo.part\n"


def test_an_honest_wheel_has_no_difference(tmp_path):
    path = make_wheel(
        tmp_path,
        "demo",
        "1.0",
        files=FILES | {"demo-1.0.data/purelib/other.py": "", "demo-1.0.data/scripts/run": "#!python\n"},
        requires_dist=["a >=1", 'b; extra == "x"'],
        provides_extra=["x"],
        entry_points=ENTRY_POINTS,
        tag="cp39-cp39-win_amd64",
    )
    found = compare_wheel(path)
    assert (found.refusal, found.differences, found.is_silent) == (None, (), False)
    assert found.record == read_path(path)
    assert found.pip_version[0].isdigit()


def test_a_record_of_other_content_differs_in_each_field(tmp_path, monkeypatch):
    path = make_wheel(tmp_path, "demo", "1.0", files=FILES, requires_dist=["a"], entry_points=ENTRY_POINTS)
    other = tmp_path / "other"
    other.mkdir()
    record = read_path(make_wheel(other, "demo", "1.0", files={"else.py": ""}, requires_dist=["b"]))
    monkeypatch.setattr(against_pip, "read_path", lambda path: record)
    found = compare_wheel(path)
    assert found.differences == (
        "modules: by pip, not in the record: demo",
        "modules: by pip, not in the record: demo.part",
        "modules: in the record, not by pip: else",
        "requires_dist: by pip, not in the record: a",
        "requires_dist: in the record, not by pip: b",
        "entry_points: by pip, not in the record: console_scripts: demo = demo:main",
        "entry_points: by pip, not in the record: group: name = demo.part",
        "start_up_paths: by pip, not in the record: start.pth",
    )
    assert found.is_silent


def test_what_pip_refuses_has_its_reason(tmp_path):
    found = compare_wheel(make_wheel(tmp_path, "demo", "1.0", files={"../evil.py": ""}))
    assert found.refusal is not None
    assert "outside the target directory" in found.refusal
    broken = tmp_path / "broken-1.0-py3-none-any.whl"
    broken.write_bytes(b"no zip")
    found = compare_wheel(broken)
    assert found.refusal is not None
    assert (found.differences, found.is_silent) == ((), False)


def test_a_script_that_old_versions_of_pip_write_elsewhere_is_not_tried(tmp_path):
    found = compare_wheel(make_wheel(tmp_path, "demo", "1.0", entry_points="[console_scripts]\n../../x = demo:main\n"))
    assert found.refusal is not None
    assert found.refusal.startswith("not tried")


def test_a_python_without_pip_is_named(tmp_path):
    path = make_wheel(tmp_path, "demo", "1.0")
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    script.chmod(0o755)
    with pytest.raises(NoPipError, match="No module named 'pip'"):
        compare_wheel(path, python=str(script))


def test_an_honest_sdist_has_no_difference(tmp_path):
    path = make_sdist(
        tmp_path, "demo", "1.0", files={"setup.py": "from setuptools import setup\nsetup()\n", "demo.py": ""}
    )
    found = compare_sdist(path)
    assert (found.refusal, found.differences) == (None, ())
    assert compare(path) == found


def test_a_record_of_another_sdist_differs(tmp_path, monkeypatch):
    path = tmp_path / "demo-1.0.tar.gz"
    path.write_bytes(tar(tar_member(b"demo-1.0/evil.py", b"")))
    reading = against_pip.read_distribution
    other = tar(tar_member(b"demo-1.0/PKG-INFO", EVIL_INFO))
    monkeypatch.setattr(against_pip, "read_distribution", lambda _, name: reading(io.BytesIO(other), name))
    found = compare_sdist(path)
    assert "files: by pip, not in the record: evil.py" in found.differences
    assert "requires_dist: in the record, not by pip: evil" in found.differences
    assert found.is_silent


def test_an_sdist_that_pip_refuses_has_its_reason(tmp_path):
    path = tmp_path / "demo-1.0.tar.gz"
    path.write_bytes(tar(link(b"demo-1.0/evil.py", b"/etc/passwd")))
    found = compare_sdist(path)
    assert found.refusal is not None
    assert "absolute path" in found.refusal
    assert not found.is_silent


def test_other_kinds_are_named(tmp_path):
    with pytest.raises(NoPipError, match="neither a wheel nor an sdist"):
        compare(tmp_path / "demo-1.0.exe")
