"""Pins of every lock format are read. All other content is rejected or named."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.locks.lock_content import LockError
from pypi_assets.locks.lock_formats import entries_reader, read_lock
from pypi_assets.locks.pins import LockedFile, RemarkKind
from pypi_assets_tests.locks import samples
from pypi_assets_tests.naming import mentions, naming

NAMES = ("uv.lock", "poetry.lock", "pylock.toml", "requirements.txt")
SAMPLES = {
    "uv.lock": samples.UV,
    "poetry.lock": samples.POETRY,
    "pylock.toml": samples.PYLOCK,
    "requirements.txt": samples.MORE,
}


def read(folder: Path, filename: str, text: str) -> list[str]:
    (folder / filename).write_text(text)
    return [pin.text for pin in read_lock(folder / filename).pins]


@pytest.mark.parametrize(
    ("filename", "text", "pins", "elsewhere"),
    [
        (
            "uv.lock",
            samples.UV,
            ["extra-dep==1.0", "never==1.0", "old==1.0", "six==1.0", "six==2.0", "yamlish==1.0+cu12"],
            ["app", "tool"],
        ),
        ("pylock.toml", samples.PYLOCK, ["pyyaml==6.0.2"], ["forked"]),
        ("pylock.dev.toml", samples.PYLOCK, ["pyyaml==6.0.2"], ["forked"]),
        ("poetry.lock", samples.POETRY, ["grouped==1", "PyYAML==6.0.2"], ["forked"]),
        ("requirements.lock.txt", "a==1\nb @ https://example.org/b.zip", ["a==1"], ["b"]),
    ],
)
def test_every_entry_is_a_pin_or_a_remark(
    tmp_path: Path, filename: str, text: str, pins: list[str], elsewhere: list[str]
) -> None:
    assert read(tmp_path, filename, text) == pins
    remarks = read_lock(tmp_path / filename).remarks
    assert [remark.project for remark in remarks] == elsewhere
    assert {remark.kind for remark in remarks} == {RemarkKind.ELSEWHERE}


def test_files_that_poetry_lists_apart_belong_to_their_version(tmp_path: Path) -> None:
    versions = ("1.0", "2.0")
    packages = "".join(f"[[package]]\nname = 'Demo'\nversion = '{version}'\n" for version in versions)
    wheels = [f"demo-{version}-py3-none-any.whl" for version in versions]
    files = ", ".join(f"{{ file = '{wheel}', hash = 'sha256:{wheel[5]}' }}" for wheel in wheels)
    text = f"{packages}[metadata]\nlock-version = '1.1'\n[metadata.files]\nDemo = [{files}]\n"
    assert read(tmp_path, "poetry.lock", text) == ["Demo==1.0", "Demo==2.0"]
    for pin, wheel in zip(read_lock(tmp_path / "poetry.lock").pins, wheels, strict=True):
        assert pin.files == (LockedFile(wheel, {"sha256": wheel[5]}),)


def test_duplicate_entry_is_one_pin_and_named(tmp_path: Path) -> None:
    assert read(tmp_path, "r.txt", "a==1\nA==1\n") == ["a==1"]
    [remark] = read_lock(tmp_path / "r.txt").remarks
    assert remark.kind is RemarkKind.REPEATED
    assert mentions(remark.text, "r.txt:2", "A==1", f"{tmp_path}/r.txt:1")


def test_invalid_lock_is_rejected_with_its_position(tmp_path: Path, subtests: pytest.Subtests) -> None:
    cases = [
        ("Pipfile.lock", "{}", ["Pipfile.lock", "uv.lock", "pylock.toml"]),
        ("pyproject.toml", "", ["pyproject.toml", "uv.lock"]),
        (
            "uv.lock",
            "version = 1\n[[package]]\nname = 'x'\nsource = { registry = 'y' }",
            ["uv.lock", "package 1", "x"],
        ),
        (
            "uv.lock",
            "version = 1\n[[package]]\nname = 'x'\nversion = '1.*'",
            ["uv.lock", "package 1", "x", "version", "1.*"],
        ),
        ("uv.lock", "version = 1\n[[package]]\nname = 'кот'\nversion = '1'", ["uv.lock", "package 1", "кот"]),
        ("uv.lock", "version = 1\n[[package]]\nname = 3", ["uv.lock", "package 1", "name", 3]),
        ("uv.lock", "a = 1\0", ["uv.lock"]),
        ("uv.lock", "a = " + "[" * 200, ["uv.lock", 100]),
        ("poetry.lock", "[metadata]\nlock-version = 2", ["poetry.lock", "metadata.lock-version", 2]),
        ("pylock.toml", "lock-version = '1.0'\ncreated-by = 'x'\npackages = 3", ["pylock.toml", "packages", 3]),
    ]
    for filename, text, values in cases:
        with subtests.test(filename=filename, text=text), pytest.raises(LockError, match=naming(*values)):
            read(tmp_path, filename, text)


def test_missing_or_irregular_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(LockError, match=naming("none.txt")):
        read_lock(tmp_path / "none.txt")
    with pytest.raises(LockError, match=naming(tmp_path)):
        read_lock(tmp_path)
    with pytest.raises(LockError):
        read_lock(Path("a\0b"))


def test_filename_determines_toml() -> None:
    assert [entries_reader(name) is None for name in (*NAMES, "pylock.a.b.toml", "Pipfile.lock")] == [
        *(False, False, False, True),
        *(True, True),
    ]


@given(st.sampled_from(NAMES), st.binary(max_size=60), st.integers(0, 400), st.integers(0, 40))
def test_mutated_lock_is_read_or_rejected(filename: str, spoiled: bytes, place: int, cut: int) -> None:
    content = SAMPLES[filename].encode()
    with tempfile.TemporaryDirectory() as folder, suppress(LockError):
        path = Path(folder) / filename
        path.write_bytes(content[:place] + spoiled + content[place + cut :])
        previous = Path.cwd()
        os.chdir(folder)  # keeps included files within the folder
        try:
            read_lock(path)
        finally:
            os.chdir(previous)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just("1.0") | st.just("registry"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["name", "version", "source", "registry", "wheels", "url", "hash", "dependencies", "marker"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.sampled_from(NAMES[:3]), values, st.sampled_from(["package", "packages", "metadata", "version"]))
def test_values_of_any_type_are_read_or_rejected(filename: str, value: object, key: str) -> None:
    reader = entries_reader(filename)
    assert reader is not None
    content = {"version": 1, "lock-version": "1.0", "created-by": "x", "metadata": {"lock-version": "2.0"}, key: value}
    with suppress(LockError):
        list(reader(content))
