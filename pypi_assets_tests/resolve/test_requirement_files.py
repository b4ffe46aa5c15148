"""Requirements files in pip's format."""

from pathlib import Path

import pytest

from pypi_assets.locks.lock_content import LockError
from pypi_assets.locks.requirement_lines import OPTIONS
from pypi_assets.resolve.questions import ALL, Control, ResolveError
from pypi_assets.resolve.requirement_files import _IGNORED, read_requirements
from pypi_assets_tests.naming import mentions, naming


def written(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_included_requirements_and_constraints_are_read(tmp_path: Path):
    written(tmp_path, "more.in", "six>=1  # why\n-c limits.txt\n")
    written(tmp_path, "limits.txt", "lib<2\n")
    first = written(tmp_path, "all.in", "# a comment\nApp[x]>=1,<2; python_version>'3.8'\n-r more.in\n\n")
    second = written(tmp_path, "lock.txt", f"demo==1 \\\n  --hash=sha256:{'0' * 64} \\\n  --hash=sha256:{'1' * 64}\n")
    third = written(tmp_path, "others.txt", "other<3\n")
    requirements = read_requirements([first, second], [third])
    required, constraints = requirements.requirements, requirements.constraints
    assert [wanted.hashes for wanted in required] == [frozenset(), frozenset(), {"0" * 64, "1" * 64}]
    assert not requirements.ignored
    assert [wanted.text for wanted in required] == ["App[x]>=1,<2; python_version>'3.8'", "six>=1", "demo==1"]
    assert [wanted.text for wanted in constraints] == ["lib<2", "other<3"]
    assert (required[0].project, required[0].extras) == ("app", ("x",))


@pytest.mark.parametrize("text", ["", "# nothing\n\n", "-c empty.txt\n"])
def test_file_without_requirements_is_rejected(tmp_path: Path, text: str):
    written(tmp_path, "empty.txt", "")
    with pytest.raises(ResolveError, match=naming("all.in")):
        read_requirements([written(tmp_path, "all.in", text)])


@pytest.mark.parametrize(
    "line", ["demo @ https://example.org/demo-1.zip", "-e .", "./folder", "git+https://example.org/a#egg=demo"]
)
@pytest.mark.parametrize("is_constraint", [False, True])
def test_direct_reference_is_rejected_with_its_line(tmp_path: Path, line: str, is_constraint: bool):
    (tmp_path / "folder").mkdir()
    first, second = written(tmp_path, "all.in", f"six\n{line}\n"), written(tmp_path, "six.in", "six\n")
    with pytest.raises(ResolveError, match=naming("all.in:2")):
        read_requirements([second], [first]) if is_constraint else read_requirements([first])


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("six\ndemo==not-a-version\n", ["all.in:2", "demo==not-a-version"]),
        ("demo" * 2_000, ["all.in:1"]),
        ("-r all.in", ["all.in"]),
        ("-r https://example.org/all.in", ["all.in:1", "https://example.org/all.in"]),
    ],
)
def test_invalid_requirement_is_rejected_with_its_line(tmp_path: Path, text: str, values: list[str]):
    with pytest.raises((LockError, ResolveError), match=naming(*values)):
        read_requirements([written(tmp_path, "all.in", text)])


def test_options_in_files_apply_to_all_requirements(tmp_path: Path):
    written(tmp_path, "limits.txt", "--only-binary=six\n--pre\nlib<2\n")
    first = written(tmp_path, "all.in", "--only-binary :all:\n-c limits.txt\n--no-binary demo,Other_One\napp\n")
    requirements = read_requirements([first])
    assert requirements.prereleases.of("six") is True
    assert requirements.formats == Control(frozenset({ALL, "six"}), frozenset({"demo", "other-one"}))
    assert requirements.ignored == []


def test_pre_release_options_are_read_in_order(tmp_path: Path, subtests: pytest.Subtests):
    cases = [
        ("--all-releases six", False, {"six": True, "demo": None}),
        ("--all-releases=:all:\n--only-final demo", False, {"six": True, "demo": False}),
        ("--only-final demo,six\n--all-releases six", False, {"six": True, "demo": False}),
        ("--only-f :all:", True, {"six": False}),
        ("--pre --only-final six", False, {"six": False, "demo": True}),
        ("--only-final six\n--pre", False, {"six": False, "demo": True}),
        ("--only-final :all:\n--only-final :none:", False, {"six": None}),
    ]
    for text, prereleases, expected in cases:
        with subtests.test(text=text):
            file = written(tmp_path, "all.in", f"{text}\napp\n")
            requirements = read_requirements([file], prereleases=prereleases)
            assert {name: requirements.prereleases.of(name) for name in expected} == expected
            assert requirements.ignored == []


def test_ignored_options_are_named_without_values(tmp_path: Path, subtests: pytest.Subtests):
    cases = [
        ("--index-url https://user:secret@example.org/", "--index-url"),
        ("-i https://user:secret@example.org/", "--index-url"),
        ("--extra-index-url https://user:secret@example.org/", "--extra-index-url"),
        ("--find-links https://user:secret@example.org/", "--find-links"),
        ("--trusted-host secret.example.org", "--trusted-host"),
        ("--no-index", "--no-index"),
        ("--prefer-binary", "--prefer-binary"),
        ("--require-hashes", "--require-hashes"),
        ("--use-feature=fast-deps", "--use-feature"),
        ("demo --global-option='--secret'", "--global-option"),
        ("demo --config-settings secret=1", "--config-settings"),
        ("demo -C secret=1", "--config-settings"),
        ("--never-known secret", "--never-known"),
        ("--global-option=secret", "--global-option"),
        ("--config-settings=secret=1", "--config-settings"),
        ("demo --only-binary=secret", "--only-binary"),
        ("-z secret", "-z"),
        (f"--hash=sha256:{'0' * 64}", "--hash"),
        (f"demo --hash=sha512:{'0' * 128}", "--hash"),
    ]
    for line, option in cases:
        with subtests.test(line=line):
            requirements = read_requirements([written(tmp_path, "all.in", f"six\n{line}\n")])
            [sentence] = requirements.ignored
            assert mentions(sentence, f"{tmp_path / 'all.in'}:2", option)
            assert "secret" not in sentence


def test_unknown_syntax_is_rejected(tmp_path: Path, subtests: pytest.Subtests):
    for line in ("six==${SIX_VERSION}", "--only-final", "--pre=1", "six --hash", "six --hash='sha256", "-r"):
        with subtests.test(line=line), pytest.raises(LockError, match=naming("all.in:2")):
            read_requirements([written(tmp_path, "all.in", f"six\n{line}\n")])


def test_every_option_of_the_format_is_handled(tmp_path: Path):
    """Check that each option is applied, ignored with a reason, or valid on single lines."""
    applied = {"--pre", "--all-releases", "--only-final", "--only-binary", "--no-binary", "--no-require-hashes"}
    assert OPTIONS - applied - {"--requirement", "--constraint", "--editable"} == set(_IGNORED)
    requirements = read_requirements([written(tmp_path, "all.in", "six\n--no-require-hashes\n")])
    assert requirements.ignored == []
