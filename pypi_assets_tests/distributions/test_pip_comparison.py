"""The comparison with pip reports all differences, and none for a correct record."""

import json
import sys

import pytest

from pypi_assets.distributions import pip_comparison, reader_pool
from pypi_assets.distributions.limits import MIB, ReadLimits
from pypi_assets.distributions.local_files import read_local
from pypi_assets.distributions.pip_comparison import NoPipError, compare, compare_sdist, compare_wheel
from pypi_assets.distributions.reader import read_path
from pypi_assets.distributions.reader_pool import ReaderPool
from pypi_assets.distributions.record import ErrorKind
from pypi_assets_tests.builders import make_sdist, make_wheel
from pypi_assets_tests.distributions.hostile_tars import EVIL_INFO, link, tar, tar_member
from pypi_assets_tests.naming import naming
from pypi_assets_tests.served_index import shared_readers

FILES = {"demo/__init__.py": "", "demo/part.py": "", "start.pth": "import demo\n"}
ENTRY_POINTS = "[console_scripts]\ndemo = demo:main\n[group]\nname = demo.part\n"


def test_valid_wheel_has_no_difference(tmp_path):
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
    comparison = compare_wheel(path, shared_readers())
    assert (comparison.refusal, comparison.differences, comparison.is_silent) == (None, (), False)
    assert comparison.record == read_path(path)
    assert comparison.pip_version[0].isdigit()


def test_record_of_other_content_differs_in_each_field(tmp_path, monkeypatch):
    path = make_wheel(tmp_path, "demo", "1.0", files=FILES, requires_dist=["a"], entry_points=ENTRY_POINTS)
    other = tmp_path / "other"
    other.mkdir()
    reading = read_local(make_wheel(other, "demo", "1.0", files={"else.py": ""}, requires_dist=["b"]), shared_readers())
    monkeypatch.setattr(pip_comparison, "read_local", lambda *_: reading)
    comparison = compare_wheel(path, shared_readers())
    assert comparison.differences == (
        "modules: by pip, not in the record: demo",
        "modules: by pip, not in the record: demo.part",
        "modules: in the record, not by pip: else",
        "requires_dist: by pip, not in the record: a",
        "requires_dist: in the record, not by pip: b",
        "entry_points: by pip, not in the record: console_scripts: demo = demo:main",
        "entry_points: by pip, not in the record: group: name = demo.part",
        "start_up_paths: by pip, not in the record: start.pth",
    )
    assert comparison.is_silent


@pytest.mark.nightly
def test_wheel_rejected_by_pip_has_a_reason(tmp_path):
    comparison = compare_wheel(make_wheel(tmp_path, "demo", "1.0", files={"../evil.py": ""}), shared_readers())
    assert comparison.refusal is not None
    assert "outside the target directory" in comparison.refusal
    broken = tmp_path / "broken-1.0-py3-none-any.whl"
    broken.write_bytes(b"no zip")
    comparison = compare_wheel(broken, shared_readers())
    assert comparison.refusal is not None
    assert (comparison.differences, comparison.is_silent) == ((), False)


def test_script_written_elsewhere_by_old_pip_is_not_compared(tmp_path):
    comparison = compare_wheel(
        make_wheel(tmp_path, "demo", "1.0", entry_points="[console_scripts]\n../../x = demo:main\n"), shared_readers()
    )
    assert comparison.pip_version == "?"
    assert comparison.refusal is not None
    assert "../../x" in comparison.refusal


def test_python_without_pip_is_named(tmp_path):
    path = make_wheel(tmp_path, "demo", "1.0")
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    script.chmod(0o755)
    with pytest.raises(NoPipError, match=naming("pip")):
        compare_wheel(path, shared_readers(), python=str(script))


def test_valid_sdist_has_no_difference(tmp_path):
    path = make_sdist(
        tmp_path, "demo", "1.0", files={"setup.py": "from setuptools import setup\nsetup()\n", "demo.py": ""}
    )
    comparison = compare_sdist(path, shared_readers())
    assert (comparison.refusal, comparison.differences) == (None, ())
    helped = {"setup.py": "from setup_helpers import *\nsetup(py_modules=MODULES)\n", "one.py": "", "two.py": ""}
    helped["setup_helpers.py"] = "MODULES = ['one', 'two']\n"
    other = make_sdist(tmp_path, "other", "1.0", files=helped)
    assert read_path(other).modules == ("one", "two")
    assert compare_sdist(other, shared_readers()).differences == ()
    assert compare(path, shared_readers()) == comparison


def test_record_of_another_sdist_differs(tmp_path, monkeypatch):
    path = tmp_path / "demo-1.0.tar.gz"
    path.write_bytes(tar(tar_member(b"demo-1.0/evil.py", b"")))
    other = tmp_path / "other" / path.name
    other.parent.mkdir()
    other.write_bytes(tar(tar_member(b"demo-1.0/PKG-INFO", EVIL_INFO)))
    reading = read_local(other, shared_readers())
    monkeypatch.setattr(pip_comparison, "read_local", lambda *_: reading)
    comparison = compare_sdist(path, shared_readers())
    assert "files: by pip, not in the record: evil.py" in comparison.differences
    assert "requires_dist: in the record, not by pip: evil" in comparison.differences
    assert comparison.is_silent


def test_sdist_rejected_by_pip_has_a_reason(tmp_path):
    path = tmp_path / "demo-1.0.tar.gz"
    path.write_bytes(tar(link(b"demo-1.0/evil.py", b"/etc/passwd")))
    comparison = compare_sdist(path, shared_readers())
    assert comparison.refusal is not None
    assert "absolute path" in comparison.refusal
    assert not comparison.is_silent


def test_other_kinds_are_named(tmp_path):
    with pytest.raises(NoPipError, match=naming("demo-1.0.exe")):
        compare(tmp_path / "demo-1.0.exe", shared_readers())


def test_pip_gets_no_settings_and_no_passwords(tmp_path, monkeypatch):
    names = ("PYPI_ASSETS_DATABASE_URL", "HTTPS_PROXY", "PIP_INDEX_URL", "HOME", "SECRET")
    for name in names:
        monkeypatch.setenv(name, "password")
    driver = "import json, os, sys; open(sys.argv[1], 'w').write(json.dumps({'refusal': None, **os.environ}))"
    output = pip_comparison._run_driver(sys.executable, tmp_path, driver)
    assert "password" not in json.dumps(output)
    assert output["HOME"] == output["TMPDIR"] == str(tmp_path)


@pytest.mark.parametrize(
    ("driver", "seconds", "refusal"),
    [
        ("import time; time.sleep(60)", 0.3, "pip takes more than 0.3 seconds"),
        ("import os; os.kill(os.getpid(), 9)", 60, "pip died: signal SIGKILL"),
    ],
)
def test_hanging_pip_counts_as_rejection(tmp_path, monkeypatch, driver, seconds, refusal):
    monkeypatch.setattr(pip_comparison, "PIP_SECONDS", seconds)
    monkeypatch.setattr(pip_comparison, "_DRIVER", driver)
    monkeypatch.setattr(pip_comparison, "_UNPACKING", driver)
    for make in (make_wheel, make_sdist):
        comparison = compare(make(tmp_path, "demo", "1.0"), shared_readers())
        assert (comparison.pip_version, comparison.refusal) == ("?", refusal)
        assert comparison.is_silent
        assert len(comparison.differences) == 1


@pytest.mark.nightly
@pytest.mark.parametrize("make", [make_wheel, make_sdist])
def test_readers_make_the_records(tmp_path, monkeypatch, make):
    monkeypatch.setattr(reader_pool, "READER_PROGRAM", "pypi_assets_tests.distributions.misbehaving_reader")
    with ReaderPool(ReadLimits(), size=1) as readers:
        comparison = compare(make(tmp_path, "crash", "1.0"), readers)
    assert comparison.record.error is not None
    assert (comparison.record.error.kind, comparison.is_silent) == (ErrorKind.READER_FAILURE, False)
    assert comparison.differences != ()


def test_toml_that_looks_like_json_is_invalid(tmp_path):
    path = make_sdist(tmp_path, "demo", "1.0", files={"pyproject.toml": '{"project": {"name": "evil"}}', "demo.py": ""})
    assert compare_sdist(path, shared_readers()).differences == ()


def test_unpacked_small_files_are_read_up_to_the_archive_limit(tmp_path):
    for name in ("setup.py", "setup_a.py", "setup_b.py"):
        (tmp_path / name).write_text("x" * 100)
    extract = pip_comparison._extract_of(tmp_path, 250)
    assert sorted(extract.files) == ["setup.py", "setup_a.py"]
    assert sorted(extract.paths) == ["setup.py", "setup_a.py", "setup_b.py"]


def test_files_written_by_pip_are_limited_in_size(tmp_path):
    wheel = make_wheel(tmp_path, "demo", "1.0", files={"large.py": "x" * MIB})
    sdist = make_sdist(tmp_path, "demo", "1.0", files={"large.txt": "x" * MIB})
    with ReaderPool(ReadLimits(max_inflated_bytes=MIB // 2), size=1) as readers:
        for each in (wheel, sdist):
            refusal = compare(each, readers).refusal
            assert refusal is not None, each.name
            assert "File too large" in refusal
