"""What maturin installs."""

import pytest

from pypi_assets.distributions.backends import maturin
from pypi_assets_tests.distributions.backends.projects import files, grade_of, modules_by

TABLE = "[tool.maturin]\n"


@pytest.mark.parametrize(
    ("contents", "expected"),
    [
        pytest.param(
            files("src/lib.rs", pyproject=TABLE) | {"Cargo.toml": '[package]\nname = "a-b"\n'},
            ["a_b", "a_b.a_b"],
            id="a crate alone gets a package around it",
        ),
        pytest.param(
            files("src/lib.rs", pyproject=TABLE) | {"Cargo.toml": '[package]\nname = "a-b"\n[lib]\nname = "_demo"\n'},
            ["_demo", "_demo._demo"],
            id="the library's name",
        ),
        pytest.param(
            files("src/lib.rs", "demo/__init__.py", "demo/x.py", "tests/t.py", pyproject=TABLE)
            | {"Cargo.toml": '[lib]\nname = "demo"\n'},
            ["demo", "demo.demo", "demo.x"],
            id="a package of the library's name",
        ),
        pytest.param(
            files(
                "py/demo/__init__.py",
                "py/demo/a/b.py",
                pyproject=TABLE + 'python-source = "py"\nmodule-name = "demo._rust"\n',
            ),
            ["demo", "demo._rust", "demo.a", "demo.a.b"],
            id="python-source and module-name",
        ),
        pytest.param(
            files(
                "py/a/__init__.py",
                "py/b/__init__.py",
                "py/c/__init__.py",
                pyproject=TABLE + 'python-source = "py"\npython-packages = ["a", "b"]\n'
                'module-name = "a.x"\n'
                'exclude = ["py/b", {path = "py/a", format = "sdist"}]\n',
            ),
            ["a", "a.x"],
            id="python-packages and exclude",
        ),
        pytest.param(
            files("src/lib.rs", "python/demo/__init__.py", "python/demo/tests/t.py", pyproject=TABLE)
            | {"Cargo.toml": '[package]\nname = "demo"\n'},
            ["demo", "demo.demo"],
            id="a folder that python-source does not name",
        ),
        pytest.param(
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
            id="include, for wheels",
        ),
        pytest.param(
            files("demo/__init__.py", pyproject=TABLE + 'bindings = "bin"\n'), ["demo"], id="a program brings no module"
        ),
        pytest.param(
            files(pyproject=TABLE + 'manifest-path = "rust/Cargo.toml"\n')
            | {"rust/Cargo.toml": '[lib]\nname = "fast"\n'},
            ["fast", "fast.fast"],
            id="manifest-path",
        ),
        pytest.param(
            files("demo/tests/test_x.py", pyproject=TABLE + 'manifest-path = "demo/Cargo.toml"\n')
            | {"demo/Cargo.toml": '[lib]\nname = "demo"\n'},
            ["demo", "demo.demo"],
            id="the crate's own folder is no package",
        ),
        pytest.param(
            files(pyproject=TABLE) | {"Cargo.toml": "[lib\n"}, ["demo", "demo.demo"], id="a broken Cargo.toml"
        ),
    ],
)
def test_maturin(contents, expected):
    assert modules_by(maturin.installed, contents) == ("maturin", expected)


@pytest.mark.parametrize(
    ("cargo", "expected", "grade"),
    [
        ('[package]\nname = "demo"\n', ["demo"], "exact"),
        ('[package]\nname = "demo"\n[dependencies]\npyo3 = "1"\n', ["demo", "demo.demo"], "exact"),
        ('[package]\nname = "demo"\n[lib]\ncrate-type = ["cdylib"]\n', ["demo", "demo.demo"], "derived"),
    ],
)
def test_a_crate_that_binds_nothing_is_a_program(cargo, expected, grade):
    contents = files("demo/__init__.py", "src/main.rs", pyproject=TABLE) | {"Cargo.toml": cargo}
    assert modules_by(maturin.installed, contents)[1] == expected
    assert grade_of(maturin.installed, contents) == grade
