"""Files of requirements, as they are written down for pip."""

from pathlib import Path

import pytest
from pip_requirements_parser import build_parser

from pypi_assets.locks.lock_content import LockError
from pypi_assets.resolve.questions import ALL, Formats, ResolveError
from pypi_assets.resolve.requirement_files import _IGNORED, read_requirements
from pypi_assets_tests.naming import mentions, naming


def written(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_requirements_and_constraints_of_files_and_of_those_that_they_include(tmp_path: Path):
    written(tmp_path, "more.in", "six>=1  # why\n-c limits.txt\n")
    written(tmp_path, "limits.txt", "lib<2\n")
    first = written(tmp_path, "all.in", "# a comment\nApp[x]>=1,<2; python_version>'3.8'\n-r more.in\n\n")
    second = written(tmp_path, "lock.txt", f"demo==1 \\\n  --hash=sha256:{'0' * 64} \\\n  --hash=sha256:{'1' * 64}\n")
    third = written(tmp_path, "others.txt", "other<3\n")
    found = read_requirements([first, second], [third])
    required, constraints = found.requirements, found.constraints
    assert [one.hashes for one in required] == [frozenset(), frozenset(), {"0" * 64, "1" * 64}]
    assert not found.ignored
    assert [one.text for one in required] == ["App[x]>=1,<2; python_version>'3.8'", "six>=1", "demo==1"]
    assert [one.text for one in constraints] == ["lib<2", "other<3"]
    assert (required[0].project, required[0].extras) == ("app", ("x",))


@pytest.mark.parametrize("text", ["", "# nothing\n\n", "-c empty.txt\n"])
def test_a_file_without_requirements_is_refused(tmp_path: Path, text: str):
    written(tmp_path, "empty.txt", "")
    with pytest.raises(ResolveError, match=naming("all.in")):
        read_requirements([written(tmp_path, "all.in", text)])


@pytest.mark.parametrize(
    "line", ["demo @ https://example.org/demo-1.zip", "-e .", "./folder", "git+https://example.org/a#egg=demo"]
)
@pytest.mark.parametrize("is_constraint", [False, True])
def test_what_is_on_no_index_is_refused_with_its_line(tmp_path: Path, line: str, is_constraint: bool):
    (tmp_path / "folder").mkdir()
    one, other = written(tmp_path, "all.in", f"six\n{line}\n"), written(tmp_path, "six.in", "six\n")
    with pytest.raises(ResolveError, match=naming("all.in:2")):
        read_requirements([other], [one]) if is_constraint else read_requirements([one])


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("six\ndemo==not-a-version\n", ["all.in:2", "demo==not-a-version"]),
        ("demo" * 2_000, ["all.in:1"]),
        ("-r all.in", ["all.in"]),
        ("-r https://example.org/all.in", ["all.in:1", "https://example.org/all.in"]),
    ],
)
def test_what_is_no_requirement_is_refused_with_its_line(tmp_path: Path, text: str, values: list[str]):
    with pytest.raises((LockError, ResolveError), match=naming(*values)):
        read_requirements([written(tmp_path, "all.in", text)])


def test_options_of_files_hold_for_all_requirements(tmp_path: Path):
    written(tmp_path, "limits.txt", "--only-binary=six\n--pre\nlib<2\n")
    first = written(tmp_path, "all.in", "--only-binary :all:\n-c limits.txt\n--no-binary demo,Other_One\napp\n")
    found = read_requirements([first])
    assert found.prereleases
    assert found.formats == Formats(frozenset({ALL, "six"}), frozenset({"demo", "other-one"}))
    assert [found.formats.only_binary(name) for name in ("app", "six", "demo")] == [True, True, False]
    assert [found.formats.only_source(name) for name in ("app", "six", "other-one")] == [False, False, True]
    assert found.ignored == []


def test_options_without_effect_are_named_and_their_values_are_not(tmp_path: Path, subtests: pytest.Subtests):
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
        (f"demo --hash=sha512:{'0' * 128}", "--hash"),
    ]
    for line, option in cases:
        with subtests.test(line=line):
            found = read_requirements([written(tmp_path, "all.in", f"six\n{line}\n")])
            [sentence] = found.ignored
            assert mentions(sentence, f"{tmp_path / 'all.in'}:2", option)
            assert "secret" not in sentence


@pytest.mark.parametrize("line", ["--never-known", "six==${SIX_VERSION}", "six --config-settings x=y"])
def test_what_the_format_does_not_have_is_refused(tmp_path: Path, line: str):
    with pytest.raises(LockError, match=naming("all.in:1")):
        read_requirements([written(tmp_path, "all.in", f"{line}\n")])


def test_no_option_of_the_format_is_passed_over(tmp_path: Path):
    """Each that the parser knows is applied, ignored with a reason, or of single lines. pip has given up the last."""
    names = {one.dest for one in build_parser()._get_all_options()}
    applied = {"pre", "only_binary", "no_binary", "requirements", "constraints", "editables"}
    of_lines = {"hashes", "global_options", "install_options"}
    past = {"allow_all_external", "allow_external", "allow_unverified", "always_unzip", "no_use_wheel"}
    assert names - applied - of_lines - past == set(_IGNORED)
    for name in past:
        with pytest.raises(LockError, match=naming("all.in:2")):
            read_requirements([written(tmp_path, "all.in", f"six\n--{name.replace('_', '-')} x\n")])


@pytest.mark.parametrize("option", ["--global-option=secret", f"--hash=sha256:{'0' * 64}", "--install-option=secret"])
def test_options_of_a_requirement_that_is_not_there_are_named(tmp_path: Path, option: str):
    found = read_requirements([written(tmp_path, "all.in", f"six\n{option}\n")])
    [sentence] = found.ignored
    assert mentions(sentence, f"{tmp_path / 'all.in'}:2")
    assert found.requirements[0].hashes == frozenset()
