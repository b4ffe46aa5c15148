"""Requirements files as pip reads them: roots, skipped lines and rejected files."""

import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement

from pypi_assets.scopes.root_files import RootsError, joined_roots, read_requirements, read_roots
from pypi_assets_tests.naming import mentions, naming

MAIN = """\
# a comment
--index-url https://example.org/simple
-r more/extra.txt
-c constraints.txt
Requests[Socks, security]>=2.0 ; python_version < "3"   # a comment
Foo_Bar==1.0 --hash=sha256:{a} \\
    --hash=sha256:{a}
-e git+https://example.org/x.git#egg=x
./folder
demo @ https://example.org/demo-1.0.tar.gz
six
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "more").mkdir()
    (tmp_path / "requirements.txt").write_text(MAIN.format(a="a" * 64))
    (tmp_path / "more" / "extra.txt").write_text("-r ../last.txt\nattrs\n")
    (tmp_path / "last.txt").write_text("\ufeffrequests[http2]\n")
    (tmp_path / "constraints.txt").write_text("idna<4\n")
    return tmp_path


def test_requirements_are_roots_and_constraints_are_not(folder: Path) -> None:
    assert read_requirements(folder / "requirements.txt").extras == {
        "attrs": frozenset(),
        "foo-bar": frozenset(),
        "requests": frozenset({"socks", "security", "http2"}),
        "six": frozenset(),
    }


def test_requirement_from_outside_the_index_is_skipped_and_reported(folder: Path) -> None:
    skipped = read_requirements(folder / "requirements.txt").skipped
    assert [text.removeprefix(f"{folder}/").partition(":")[2].partition(":")[0] for text in skipped] == ["8", "9", "10"]


def test_unknown_option_is_skipped_and_reported(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("--no-such-option x\nsix --other\n")
    found = read_requirements(tmp_path / "requirements.txt")
    assert list(found.extras) == ["six"]
    assert [
        mentions(text, f"requirements.txt:{number}", option)
        for text, (number, option) in zip(found.skipped, [(1, "--no-such-option"), (2, "--other")], strict=True)
    ] == [True, True]


def test_one_name_per_line_is_read(tmp_path: Path) -> None:
    (tmp_path / "names").write_text("six\r\n\r\nDemo.Pkg\n")
    assert list(read_requirements(tmp_path / "names").extras) == ["demo-pkg", "six"]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("six\nnot a name\n", ["requirements.txt:2", "not a name"]),
        ("six ===== 1", ["requirements.txt:1"]),
        ("-r none.txt", ["none.txt"]),
        ("-c none.txt", ["none.txt"]),
        ("-r requirements.txt", ["requirements.txt"]),
        ("-r https://example.org/r.txt", ["requirements.txt:1", "https://example.org/r.txt"]),
        ("${NAME}", ["requirements.txt:1", "${NAME}"]),
    ],
)
def test_invalid_requirement_is_reported_with_its_line(tmp_path: Path, text: str, values: list[str]) -> None:
    (tmp_path / "requirements.txt").write_text(text)
    with pytest.raises(RootsError, match=naming(*values)):
        read_requirements(tmp_path / "requirements.txt")


@pytest.mark.parametrize("content", [b"PK\x03\x04\xab", b"# coding: no-such-codec\nsix\n", b"\xff\xfes"], ids=ascii)
def test_binary_file_is_rejected(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "requirements.txt").write_bytes(content)
    with pytest.raises(RootsError, match=naming("requirements.txt")):
        read_requirements(tmp_path / "requirements.txt")


@given(st.binary(max_size=60))
def test_any_content_is_read_or_rejected(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name in ("requirements.txt", "pyproject.toml", "uv.lock", "poetry.lock", "pylock.toml"):
            (path := Path(folder) / name).write_bytes(content)
            with suppress(RootsError):
                read_roots(path)


def test_circular_include_is_rejected(folder: Path) -> None:
    (folder / "last.txt").write_text("-r more/extra.txt\n")
    with pytest.raises(RootsError, match=naming("extra.txt")):
        read_requirements(folder / "requirements.txt")


def test_two_files_may_include_the_same_file(folder: Path) -> None:
    (folder / "both.txt").write_text("-r last.txt\n-r more/extra.txt\n")
    assert list(read_requirements(folder / "both.txt").extras) == ["attrs", "requests"]


def test_pip_reads_the_same_requirements(folder: Path) -> None:
    driver = (
        "import sys\n"
        "from pip._internal.network.session import PipSession\n"
        "from pip._internal.req import parse_requirements\n"
        "for each in parse_requirements(sys.argv[1], PipSession()):\n"
        "    if not each.constraint and not each.is_editable: print(each.requirement)\n"
    )
    path = folder / "requirements.txt"
    path.write_text("".join(line for line in path.read_text().splitlines(keepends=True) if "./" not in line))
    printed = subprocess.run(
        [sys.executable, "-c", driver, str(path)], capture_output=True, text=True, check=True
    ).stdout
    requirements = [Requirement(line) for line in printed.splitlines()]
    theirs = joined_roots(
        (requirement.name, requirement.extras) for requirement in requirements if requirement.url is None
    )
    assert theirs.extras == read_requirements(path).extras
