"""Pins of one version are joined, and nothing of them is lost."""

from pypi_assets.locks.pins import LockedFile, Pin, RemarkKind, merged


def pin(version: str = "1", marker: str | None = None, sha256: str = "", where: str = "line 1") -> Pin:
    files = (LockedFile(None, {"sha256": sha256}),) if sha256 else ()
    return Pin("A", "a", version, where, marker, files=files)


def test_files_and_markers_of_one_version_are_joined() -> None:
    pins, remarks = merged([pin(marker="x", sha256="aa"), pin(marker="y", sha256="bb"), pin(marker="y", sha256="aa")])
    assert [(one.marker, [file.hashes["sha256"] for file in one.files]) for one in pins] == [
        ("((x) or (y)) or (y)", ["aa", "bb"])
    ]
    assert remarks == ()


def test_what_is_for_all_environments_once_is_for_all() -> None:
    assert [one.marker for one in merged([pin(marker="x"), pin()])[0]] == [None]


def test_a_repeated_pin_has_a_remark() -> None:
    [remark] = merged([pin(), pin(where="line 2")])[1]
    assert (remark.kind, remark.text) == (RemarkKind.REPEATED, "line 2: A==1 is in line 1 already")


def test_pins_are_in_order_of_names_and_versions() -> None:
    assert [one.version for one in merged([pin("2"), pin("1")])[0]] == ["1", "2"]
