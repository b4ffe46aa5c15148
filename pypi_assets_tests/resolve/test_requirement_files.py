"""Files of requirements, as they are written down for pip."""

from pathlib import Path

import pytest

from pypi_assets.locks.lock_content import LockError
from pypi_assets.resolve.questions import ResolveError
from pypi_assets.resolve.requirement_files import read_requirements


def written(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_requirements_and_constraints_of_files_and_of_those_that_they_include(tmp_path: Path):
    written(tmp_path, "more.in", "six>=1  # why\n-c limits.txt\n")
    written(tmp_path, "limits.txt", "lib<2\n")
    first = written(tmp_path, "all.in", "# a comment\nApp[x]>=1,<2; python_version>'3.8'\n-r more.in\n\n")
    second = written(tmp_path, "lock.txt", f"demo==1 \\\n  --hash=sha256:{'0' * 64} \\\n  --hash=sha256:{'1' * 64}\n")
    third = written(tmp_path, "others.txt", "other<3\n")
    required, constraints = read_requirements([first, second], [third])
    assert [one.text for one in required] == ["App[x]>=1,<2; python_version>'3.8'", "six>=1", "demo==1"]
    assert [one.text for one in constraints] == ["lib<2", "other<3"]
    assert (required[0].project, required[0].extras) == ("app", ("x",))


@pytest.mark.parametrize("text", ["", "# nothing\n\n", "-c empty.txt\n"])
def test_a_file_without_requirements_is_refused(tmp_path: Path, text: str):
    written(tmp_path, "empty.txt", "")
    with pytest.raises(ResolveError, match=r"all\.in: it names no requirement"):
        read_requirements([written(tmp_path, "all.in", text)])


@pytest.mark.parametrize(
    "line", ["demo @ https://example.org/demo-1.zip", "-e .", "./folder", "git+https://example.org/a#egg=demo"]
)
@pytest.mark.parametrize("is_constraint", [False, True])
def test_what_is_on_no_index_is_refused_with_its_line(tmp_path: Path, line: str, is_constraint: bool):
    (tmp_path / "folder").mkdir()
    one, other = written(tmp_path, "all.in", f"six\n{line}\n"), written(tmp_path, "six.in", "six\n")
    with pytest.raises(ResolveError, match=r"all.in:2: .* is a URL or a path"):
        read_requirements([other], [one]) if is_constraint else read_requirements([one])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("six\ndemo==not-a-version\n", r"all.in:2: 'demo==not-a-version' is no requirement"),
        ("demo" * 2_000, "all.in:1: .* characters"),
        ("-r all.in", "it includes itself"),
        ("-r https://example.org/all.in", "is not a local file"),
    ],
)
def test_what_is_no_requirement_is_refused_with_its_line(tmp_path: Path, text: str, reason: str):
    with pytest.raises((LockError, ResolveError), match=reason):
        read_requirements([written(tmp_path, "all.in", text)])
