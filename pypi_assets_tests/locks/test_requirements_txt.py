"""Requirements with `==` are pins; what pins nothing is refused, and what is of no index is named."""

from pathlib import Path

import pytest

from pypi_assets.locks.lock_content import LockError
from pypi_assets.locks.pins import RemarkKind
from pypi_assets.locks.requirement_lines import requirement_pins
from pypi_assets_tests.locks import samples
from pypi_assets_tests.naming import mentions, naming


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
        mentions(remark.text, *values)
        for remark, values in zip(
            remarks,
            [
                (f"{tmp_path}/requirements.txt:10", "-e ."),
                (f"{tmp_path}/requirements.txt:11", "forked @ git+https://example.org/forked.git"),
            ],
            strict=True,
        )
    ] == [True, True]


def test_a_line_that_pins_no_version_is_refused(tmp_path: Path, subtests: pytest.Subtests) -> None:
    cases = [
        ("a", ["r.txt:1", "a", "a==1.0"]),
        ("a>=1", ["r.txt:1", "a>=1"]),
        ("a==1.*", ["r.txt:1", "a==1.*"]),
        ("a==1,!=2", ["r.txt:1", "a==1,!=2"]),
        ("a===old", ["r.txt:1", "old"]),
        ("a==1\na==2", ["r.txt:2", "a==2", "a==1", "r.txt:1"]),
        ("a==1; os_name=='x'\na==2", ["r.txt:2", "a==2", "a==1", "r.txt:1"]),
        ("a==1; os_name=='x'\na==2; os_name=='x'", ["r.txt:2", "a==2", "a==1", "r.txt:1"]),
        ("a==1 --hash=sha256", ["r.txt:1", "sha256"]),
        ("a==1 ; os_name", ["r.txt:1", "a==1 ; os_name"]),
        ("a\0==1", ["r.txt:1"]),
    ]
    for text, values in cases:
        with subtests.test(text=text):
            (tmp_path / "r.txt").write_text(text)
            with pytest.raises(LockError, match=naming(*values)):
                requirement_pins(tmp_path / "r.txt")


def test_versions_for_other_environments_are_no_contradiction(tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_text("a==1; os_name=='x'\na==2; os_name!='x'\nb==1\nb==1; os_name=='x'")
    assert [pin.text for pin in requirement_pins(tmp_path / "r.txt")[0]] == ["a==1", "a==2", "b==1", "b==1"]


def test_an_unknown_option_is_a_remark(tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_text("--no-such-option=secret\na==1 --other\n--only-final :all:\n")
    pins, remarks = requirement_pins(tmp_path / "r.txt")
    assert [pin.text for pin in pins] == ["a==1"]
    assert [remark.kind for remark in remarks] == [RemarkKind.UNKNOWN_OPTION] * 2
    assert mentions(remarks[0].text, "r.txt:1", "--no-such-option")
    assert "secret" not in remarks[0].text
