"""Requirements with `==` are pins; what pins nothing is refused, and what is of no index is named."""

from pathlib import Path

import pytest

from pypi_assets.locks.lock_content import LockError
from pypi_assets.locks.requirements_txt import requirement_pins
from pypi_assets_tests.locks import samples


def test_pins_have_versions_markers_hashes_and_extras(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text(samples.REQUIREMENTS)
    (tmp_path / "more.txt").write_text(samples.MORE)
    (tmp_path / "constraints.txt").write_text(samples.CONSTRAINTS)
    pins, remarks = requirement_pins(tmp_path / "requirements.txt")
    found = {pin.name: pin for pin in pins}
    assert {name: pin.version for name, pin in found.items()} == {
        "PyYAML": "6.0.2",
        "six": "1.17.0",
        "Zope.Interface": "7.2",
        "idna": "3.10",
    }
    assert found["PyYAML"].marker == 'python_version >= "3.9"'
    assert [file.hashes for file in found["PyYAML"].files] == [{"sha256": "a" * 64}, {"sha256": "b" * 64}]
    assert found["Zope.Interface"].extras == {"test"}
    assert found["Zope.Interface"].where == f"{tmp_path}/more.txt:1"
    assert [
        remark.text.removeprefix(f"{tmp_path}/requirements.txt:").partition(" is a URL")[0] for remark in remarks
    ] == [
        "10: '-e .'",
        "11: 'forked @ git+https://example.org/forked.git'",
    ]


def test_a_line_that_pins_no_version_is_refused(tmp_path: Path, subtests: pytest.Subtests) -> None:
    cases = [
        ("a", r"r\.txt:1: 'a' pins no version: .* as in a==1\.0"),
        ("a>=1", "pins no version"),
        ("a==1.*", "pins no version"),
        ("a==1,!=2", "pins no version"),
        ("a===old", "'old' is no version"),
        ("a==1\na==2", r"r\.txt:2: a==2 contradicts a==1 of .*r\.txt:1"),
        ("a==1; os_name=='x'\na==2", "contradicts"),
        ("a==1; os_name=='x'\na==2; os_name=='x'", "contradicts"),
        ("a==1 --hash=sha256", r"r\.txt:1"),
        ("a==1 ; os_name", "is no requirement"),
        ("a\0==1", "is no requirement"),
    ]
    for text, problem in cases:
        with subtests.test(text=text):
            (tmp_path / "r.txt").write_text(text)
            with pytest.raises(LockError, match=problem):
                requirement_pins(tmp_path / "r.txt")


def test_versions_for_other_environments_are_no_contradiction(tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_text("a==1; os_name=='x'\na==2; os_name!='x'\nb==1\nb==1; os_name=='x'")
    assert [pin.text for pin in requirement_pins(tmp_path / "r.txt")[0]] == ["a==1", "a==2", "b==1", "b==1"]
