from collections.abc import Mapping
from datetime import UTC, datetime

import pytest
from packaging.specifiers import SpecifierSet

from pypi_assets.locks.environments import named_environment
from pypi_assets.resolve.candidates import Candidate, Candidates, Conditions
from pypi_assets.resolve.positions import Positions
from pypi_assets.resolve.version_sets import Notes
from pypi_assets_tests.resolve.made_index import LINUX, MadeIndex, Release


def candidates(releases: dict[str, Release], **options: object) -> Candidates:
    return MadeIndex({"demo": releases}).candidates("demo", Conditions(**{"environment": LINUX} | options))  # type: ignore[arg-type]


def everything(usable: Candidates) -> list[Candidate]:
    return [usable[number] for number in range(usable.count)]


def fitting(usable: Candidates) -> dict[str, str]:
    """Return the file of each installable version."""
    return {
        candidate.text: candidate.file["filename"] for candidate in everything(usable) if candidate.file is not None
    }


JANUARY = datetime(2026, 1, 31, tzinfo=UTC)
SDIST: dict[str, object] = {
    **dict.fromkeys(("requires_python", "refusals", "installed_metadata", "outcome")),
    "project": "demo",
    "version": "1",
    "kind": "sdist",
    "filename": "demo-1.tar.gz",
    "requires_dist": ["own"],
    "yanked": False,
    "sha256": "",
    "uploaded_at": "2026-01-01T00:00:00Z",
}


def wheel_row(tag: str, requires_dist: list[str]) -> dict[str, object]:
    return SDIST | {"kind": "wheel", "filename": f"demo-1-{tag}.whl", "requires_dist": requires_dist}


def chosen_of(files: list[dict[str, object]], **options: object) -> Mapping[str, object]:
    """Return the file that is chosen, by uv's rules if nothing else is said."""
    conditions = Conditions(**{"environment": LINUX, "as_uv": True} | options)  # type: ignore[arg-type]

    class OneRelease:
        names = ("1",)

        def files(self, name: str) -> list[dict[str, object]]:
            return files

    candidate = Candidates("demo", OneRelease(), Positions(["1"]), conditions)[0]
    assert candidate.file is not None
    assert candidate.file["filename"] == "demo-1.tar.gz"
    return candidate.file


def test_valid_versions_are_sorted_and_others_skipped():
    usable = candidates({"1.10": [], "1.9": [], "1.9.post1": [], "1!0.1": [], "2.0.dev1": [], "none": [], "1.9+x": []})
    assert [candidate.text for candidate in everything(usable)] == [
        "1.9",
        "1.9+x",
        "1.9.post1",
        "1.10",
        "2.0.dev1",
        "1!0.1",
    ]
    assert usable.known == 0b111111
    assert bin(usable.stable) == "0b101111"


def test_equal_versions_are_merged():
    usable = candidates({"1.0": {"yanked": True}, "1.0.0": [], "1": {"filenames": ["demo-1.tar.gz"]}})
    assert fitting(usable) == {"1": "demo-1.0.0-py3-none-any.whl"}
    assert not usable.yanked(usable.known)


@pytest.mark.parametrize(
    ("filenames", "options", "taken"),
    [
        (["demo-1.tar.gz", "demo-1-py3-none-any.whl"], {}, "demo-1-py3-none-any.whl"),
        (["demo-1.tar.gz", "demo-1-cp311-cp311-win_amd64.whl"], {}, "demo-1.tar.gz"),
        (["demo-1.zip", "demo-1.tar.gz"], {}, "demo-1.zip"),
        (["demo-1.zip", "demo-1.tar.gz"], {"as_uv": True}, "demo-1.tar.gz"),
        (["demo-1.tgz", "demo-1.tar.bz2"], {}, "demo-1.tgz"),
        (["demo-1.zip", "demo-1.tar.bz2"], {"as_uv": True}, "demo-1.zip"),
        (["demo-1.tar.Z", "demo-1.ZIP", "demo-1.tar"], {}, "demo-1.tar"),
        (["demo-1-py3-none-any.whl", "demo-1-py2.py3-none-any.whl"], {}, "demo-1-py3-none-any.whl"),
        (["demo-1-py3-none-any.whl", "demo-1-py2.py3-none-any.whl"], {"as_uv": True}, "demo-1-py2.py3-none-any.whl"),
        (["demo-1-2b-py3-none-any.whl", "demo-1-2a-py3-none-any.whl"], {}, "demo-1-2b"),
        (["demo-1-py3-none-any.whl", "demo-1-cp312-cp312-manylinux_2_17_x86_64.whl"], {}, "cp312-manylinux"),
        (["demo-1-2-py3-none-any.whl", "demo-1-10-py3-none-any.whl"], {}, "demo-1-10"),
        (
            ["demo-1-cp312-cp312-macosx_11_0_arm64.whl", "demo-1-py3-none-any.whl"],
            {"environment": named_environment("3.12", "macos")},
            "macosx",
        ),
    ],
)
def test_best_matching_file_is_chosen(filenames, options, taken):
    [filename] = fitting(candidates({"1": {"filenames": filenames}}, **options)).values()
    assert taken in filename


def test_last_file_of_equal_versions_is_chosen_by_pip_and_the_first_by_uv():
    releases = {"1.0": {"filenames": ["demo-1.0.tar.gz"]}, "1.0.0": {"filenames": ["demo-1.0.0.tar.gz"]}}
    for as_uv, taken in ((False, "demo-1.0.tar.gz"), (True, "demo-1.0.0.tar.gz")):
        assert list(fitting(candidates(releases, as_uv=as_uv)).values()) == [taken]


def test_sdist_is_resolved_by_the_closest_wheel_for_uv():
    cases = [  # wheels by the project that they require, the closest first
        {"platform": "cp312-cp312-win_amd64", "abi": "cp312-cp313t-linux_x86_64", "python": "cp311-cp311-win_amd64"},
        {"abi": "cp312-none-win_amd64.win32", "python": "cp311-cp311-any"},
        {"first": "cp312-cp312-macosx_11_0_arm64", "second": "cp312-cp312-win_amd64"},
    ]
    for case in cases:
        files = [wheel_row(tag, [name]) for name, tag in reversed(case.items())]
        for as_uv, required in ((False, ["own"]), (True, [next(iter(case))])):
            assert chosen_of([SDIST, *files], as_uv=as_uv)["requires_dist"] == required, case
    old = wheel_row("cp312-cp312-win_amd64", ["wheel"])
    others: dict[str, object] = {"uploaded_at": "2026-02-01T00:00:00Z", "filename": "demo-1-py2-none-any.whl"}
    assert chosen_of([SDIST, old, old | others], uploaded_before=JANUARY)["requires_dist"] == ["own"]
    for change in ({"yanked": True}, {"requires_python": ">=3.13"}):
        farther = wheel_row("cp312-cp312-macosx_11_0_arm64", ["farther"]) | change
        nearer = wheel_row("py2-none-any", ["nearer"])
        assert chosen_of([SDIST, farther, nearer])["requires_dist"] == ["nearer"], change
        assert chosen_of([SDIST, farther])["requires_dist"] == ["farther"], change
    unread = old | {"requires_dist": None}
    assert chosen_of([SDIST, unread])["requires_dist"] == ["own"]
    fits = wheel_row("py3-none-any", ["wheel"])
    assert chosen_of([SDIST, fits], only_source=True)["requires_dist"] == ["wheel"]


def test_sdist_of_another_suffix_cannot_be_chosen():
    for filename, as_uv in (("demo-1.tar.Z", False), ("demo-1.tar.bz2", True), ("demo-1.tgz", True)):
        usable = candidates({"1": {"filenames": [filename]}}, as_uv=as_uv)
        assert fitting(usable) == {}, filename
        assert usable.reasons(usable.known).total() == 1


@pytest.mark.parametrize(
    ("columns", "options", "reason"),
    [
        ({"requires_python": ">=3.13"}, {}, "for Python >=3.13"),
        ({"filenames": ["demo-1.tar.gz"]}, {"only_binary": True}, "without a wheel"),
        ({"filenames": ["demo-1-cp312-cp312-win32.whl"]}, {}, "without a wheel for this environment"),
        ({"filenames": ["demo-1.exe"], "kind": "wininst"}, {}, "without a file that installers take"),
        ({"uploaded_at": "2026-01-02T00:00:00Z"}, {"uploaded_before": datetime(2026, 1, 2, tzinfo=UTC)}, "too new"),
        ({"uploaded_at": None}, {"uploaded_before": datetime(2026, 1, 2, tzinfo=UTC)}, "too new"),
        (
            {"uploaded_at": None, "first_seen_at": "2026-01-02T00:00:00Z"},
            {"uploaded_before": datetime(2026, 1, 2, tzinfo=UTC)},
            "too new",
        ),
    ],
)
def test_no_usable_file_has_a_reason(columns, options, reason):
    usable = candidates({"1": columns, "0": {"uploaded_at": "2020-01-01T00:00:00"}}, **options)
    assert fitting(usable).keys() == {"0"}
    assert usable.reasons(usable.known) == {reason: 1}


def test_version_is_yanked_if_all_usable_files_are():
    wheel = {"filenames": ["demo-1-py3-none-any.whl"]}
    usable = candidates({"1": {**wheel, "yanked": True}, "1.0": {"filenames": ["demo-1.0.tar.gz"]}})
    assert fitting(usable) == {"1": "demo-1.0.tar.gz"}
    assert not usable.yanked(usable.known)
    usable = candidates({"1": {**wheel, "yanked": True}, "1.0": {"filenames": ["demo-1.0.tar.gz"]}}, only_binary=True)
    assert fitting(usable) == {"1": "demo-1-py3-none-any.whl"}
    assert usable.yanked(usable.known) == 1


def test_specifier_sets():
    usable = candidates({"1.0": [], "1.5": [], "2.0rc1": [], "2.0": []})
    assert bin(usable.matching(SpecifierSet(">=1.5")).bits) == "0b1110"
    assert bin(usable.matching(SpecifierSet("")).bits) == "0b1111"
    assert bin(usable.matching(SpecifierSet("==1.*")).bits) == "0b11"
    assert bin(usable.matching(SpecifierSet("===1.0")).bits) == "0b1"
    none, other = usable.matching(SpecifierSet(">=3")), usable.matching(SpecifierSet(">=4"))
    assert not (none.bits | other.bits) & usable.known
    assert none.is_disjoint(other)
    assert not none.is_empty
    assert not other.is_empty
    assert usable.matching(SpecifierSet(">=3")) == none


def test_specifier_notes(subtests: pytest.Subtests):
    cases = [
        ("", Notes.NONE),
        (">=1", Notes.CONDITIONED),
        ("!=1", Notes.CONDITIONED),
        ("<2", Notes.CONDITIONED | Notes.BOUNDED),
        ("~=1.1", Notes.CONDITIONED | Notes.BOUNDED),
        ("==1.*", Notes.CONDITIONED | Notes.BOUNDED),
        ("==1", Notes.CONDITIONED | Notes.PINNED),
        ("===1", Notes.CONDITIONED | Notes.PINNED),
        (">=2.0rc1", Notes.CONDITIONED | Notes.PRERELEASES),
        (">1,<2.0b1", Notes.CONDITIONED | Notes.BOUNDED | Notes.PRERELEASES),
    ]
    for text, notes in cases:
        with subtests.test(text=text):
            assert candidates({"1": []}).matching(SpecifierSet(text)).notes == notes
