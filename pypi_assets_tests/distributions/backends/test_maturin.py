"""The modules that maturin installs."""

import pytest

from pypi_assets.distributions.backends import maturin
from pypi_assets_tests.distributions.backends.projects import files, grade_of, modules_by

TABLE = "[tool.maturin]\n"


def test_maturin(subtests: pytest.Subtests):
    cases = [
        (
            "a crate alone gets a package around it",
            files("src/lib.rs", pyproject=TABLE) | {"Cargo.toml": '[package]\nname = "a-b"\n'},
            ["a_b", "a_b.a_b"],
        ),
        (
            "the library's name",
            files("src/lib.rs", pyproject=TABLE) | {"Cargo.toml": '[package]\nname = "a-b"\n[lib]\nname = "_demo"\n'},
            ["_demo", "_demo._demo"],
        ),
        (
            "a package of the library's name",
            files("src/lib.rs", "demo/__init__.py", "demo/x.py", "tests/t.py", pyproject=TABLE)
            | {"Cargo.toml": '[lib]\nname = "demo"\n'},
            ["demo", "demo.demo", "demo.x"],
        ),
        (
            "python-source and module-name",
            files(
                "py/demo/__init__.py",
                "py/demo/a/b.py",
                pyproject=TABLE + 'python-source = "py"\nmodule-name = "demo._rust"\n',
            ),
            ["demo", "demo._rust", "demo.a", "demo.a.b"],
        ),
        (
            "python-packages and exclude",
            files(
                "py/a/__init__.py",
                "py/b/__init__.py",
                "py/c/__init__.py",
                pyproject=TABLE + 'python-source = "py"\npython-packages = ["a", "b"]\n'
                'module-name = "a.x"\n'
                'exclude = ["py/b", {path = "py/a", format = "sdist"}]\n',
            ),
            ["a", "a.x"],
        ),
        (
            "a folder that python-source does not name",
            files("src/lib.rs", "python/demo/__init__.py", "python/demo/tests/t.py", pyproject=TABLE)
            | {"Cargo.toml": '[package]\nname = "demo"\n'},
            ["demo", "demo.demo"],
        ),
        (
            "include, for wheels",
            files(
                "src/demo/__init__.py",
                "src/_hook.py",
                "src/_old.py",
                "src/_plain.py",
                pyproject=TABLE + 'python-source = "src"\nmodule-name = "demo._rust"\n'
                'include = [{path = "src/_h*.py", format = ["sdist", "wheel"]},'
                ' {path = "src/_old.py", format = "sdist"}, "src/_plain.py"]\n',
            ),
            ["_hook", "demo", "demo._rust"],
        ),
        ("a program brings no module", files("demo/__init__.py", pyproject=TABLE + 'bindings = "bin"\n'), ["demo"]),
        (
            "manifest-path",
            files(pyproject=TABLE + 'manifest-path = "rust/Cargo.toml"\n')
            | {"rust/Cargo.toml": '[lib]\nname = "fast"\n'},
            ["fast", "fast.fast"],
        ),
        (
            "the crate's own folder is no package",
            files("demo/tests/test_x.py", pyproject=TABLE + 'manifest-path = "demo/Cargo.toml"\n')
            | {"demo/Cargo.toml": '[lib]\nname = "demo"\n'},
            ["demo", "demo.demo"],
        ),
        ("a broken Cargo.toml", files(pyproject=TABLE) | {"Cargo.toml": "[lib\n"}, ["demo", "demo.demo"]),
    ]
    for case, contents, expected in cases:
        with subtests.test(case):
            assert modules_by(maturin.installed, contents) == ("maturin", expected)


@pytest.mark.parametrize(
    ("cargo", "expected", "grade"),
    [
        ('[package]\nname = "demo"\n', ["demo"], "exact"),
        ('[package]\nname = "demo"\n[dependencies]\npyo3 = "1"\n', ["demo", "demo.demo"], "exact"),
        ('[package]\nname = "demo"\n[lib]\ncrate-type = ["cdylib"]\n', ["demo", "demo.demo"], "derived"),
    ],
)
def test_crate_without_bindings_is_a_program(cargo, expected, grade):
    contents = files("demo/__init__.py", "src/main.rs", pyproject=TABLE) | {"Cargo.toml": cargo}
    assert modules_by(maturin.installed, contents)[1] == expected
    assert grade_of(maturin.installed, contents) == grade
