"""Pins of one version are joined, and nothing of them is lost."""

from pypi_assets.locks.environments import named_environment
from pypi_assets.locks.pins import LockedFile, Pin, RemarkKind, merged
from pypi_assets_tests.counted_steps import growth
from pypi_assets_tests.naming import mentions


def pin(version: str = "1", marker: str | None = None, sha256: str = "", where: str = "line 1") -> Pin:
    files = (LockedFile(None, {"sha256": sha256}),) if sha256 else ()
    return Pin("A", "a", version, where, marker, files=files)


def test_files_and_markers_of_one_version_are_joined() -> None:
    pins, remarks = merged([pin(marker="x", sha256="aa"), pin(marker="y", sha256="bb"), pin(marker="y", sha256="aa")])
    assert [(one.marker, [file.hashes["sha256"] for file in one.files]) for one in pins] == [
        ("(x) or (y)", ["aa", "bb"])
    ]
    assert [remark.kind for remark in remarks] == [RemarkKind.REPEATED]


def test_what_is_for_all_environments_once_is_for_all() -> None:
    assert [one.marker for one in merged([pin(marker="x"), pin()])[0]] == [None]


def test_a_repeated_pin_has_a_remark() -> None:
    [remark] = merged([pin(), pin(where="line 2")])[1]
    assert remark.kind is RemarkKind.REPEATED
    assert mentions(remark.text, "line 2", "A==1", "line 1")


def test_pins_are_in_order_of_names_and_versions() -> None:
    assert [one.version for one in merged([pin("2"), pin("1")])[0]] == ["1", "2"]


def test_any_number_of_markers_is_joined_flat_in_work_that_grows_with_it_alone() -> None:
    def pins_of(count: int) -> list[Pin]:
        return [pin(marker=f"python_full_version < '3.{number}'", sha256=f"{number:x}") for number in range(count)]

    [joined] = merged(pins_of(3_000))[0]
    assert joined.marker is not None
    assert joined.marker.count("(") == 3_000
    assert len(joined.files) == 3_000
    assert named_environment("3.12").holds(joined.marker) is True
    assert growth(lambda count: merged(pins_of(count)), 50) < 5
