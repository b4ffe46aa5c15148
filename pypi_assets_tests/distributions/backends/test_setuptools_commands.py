"""Leftover build folders in an sdist and command options change the modules that setuptools installs."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pypi_assets.distributions.backends import setuptools
from pypi_assets.distributions.reader import read_path
from pypi_assets_tests.distributions.backends.projects import NAME, files, grade_of, modules_by

PACKAGE = f'{NAME}[tool.setuptools]\npackages = ["demo"]\n'
EXTENSION = 'from setuptools import setup, Extension\nsetup(ext_modules=[Extension("fast", ["f.c"])])\n'


def test_leftover_build_folders_are_installed(subtests: pytest.Subtests):
    cases = [
        ("build/lib/old.py", {}, ["demo", "old"], "exact"),
        ("build/lib/demo/old.py", {}, ["demo", "demo.old"], "exact"),
        ("build/old.py", {}, ["demo"], "exact"),
        ("build/lib.linux-x86_64-cpython-312/old.py", {}, ["demo"], "exact"),
        ("build/lib.linux-x86_64-cpython-312/old.py", {"setup_py": EXTENSION}, ["demo", "fast", "old"], "derived"),
        ("build/lib/old.py", {"setup_py": EXTENSION}, ["demo", "fast"], "exact"),
        ("build/bdist.linux-x86_64/wheel/a/old.py", {}, ["a", "a.old", "demo"], "derived"),
        ("build/bdist.linux-x86_64/old.py", {}, ["demo"], "exact"),
    ]
    for path, more, expected, grade in cases:
        with subtests.test(path=path, more=more):
            contents = files("demo/__init__.py", path, pyproject=PACKAGE, **more)
            assert modules_by(setuptools.installed, contents)[1] == expected
            assert grade_of(setuptools.installed, contents) == grade


def test_command_options_are_followed_or_lower_the_grade(subtests: pytest.Subtests):
    cases = [
        ("[build]\nbuild-base = bb\n", ["demo", "old"], "exact"),
        ("[build]\nbuild_lib = bb/lib\n", ["demo", "old"], "exact"),
        ("[build]\nbuild-purelib = ./bb/lib\n", ["demo", "old"], "exact"),
        ("[install_lib]\nbuild-dir = bb/lib\n", ["old"], "exact"),
        ("[build]\nbuild-base = bb\n[install_lib]\nbuild-dir = bb/lib\n", ["demo", "old"], "exact"),
        ("[bdist_wheel]\nbdist-dir = bb/lib\n", ["demo", "old"], "derived"),
        ("[bdist_wheel]\nuniversal = 1\n[aliases]\ntest = pytest\n[install]\noptimize = 1\n", ["demo"], "exact"),
        ("[egg_info]\ntag_build = dev\ntag_date = 0\n", ["demo"], "exact"),
        ("[build_py]\nbuild-lib = bb/lib\n", [], "exact"),
        ("[build_py]\nbuild-lib = ./build//lib/\n", ["demo"], "exact"),
        ("[build_py]\nbuild-lib = build/lib/sub\n", ["sub", "sub.demo"], "exact"),
        ("[build]\nbuild-lib = bb/lib\n[build_py]\nbuild-lib = bb/lib\n", ["demo", "old"], "exact"),
        ("[build_py]\nbuild-lib = bb/lib\n[install_lib]\nbuild-dir = bb/lib\n", ["demo", "old"], "exact"),
        ("[build_py]\nbuild-lib = x\n[install_lib]\nbuild-dir = bb/lib\n", ["old"], "exact"),
        ("[build]\nbuild-lib = bb/lib\n[build_py]\nbuild-lib = x\n", ["old"], "exact"),
        ("[bdist]\nbdist-base = bb\n", ["demo", "inner", "inner.old"], "derived"),
        ("[build_py]\nbuild-lib = ../x\n", [], "guessed"),
        ("[install_lib]\ninstall-dir = bb\n", [], "exact"),
        ("[install_lib]\ninstall-dir = build/bdist.linux-x86_64/wheel\n", [], "guessed"),
        ("[install_lib]\ninstall-dir = /bb\n", [], "guessed"),
        ("[egg_info]\negg-base = bb\n[sdist]\nformats = zip\n", ["demo"], "exact"),
        ("[BUILD_PY]\nbuild-lib = x\n[build-py]\nbuild-lib = x\n", ["demo"], "exact"),
        ("[install]\ninstall_lib = q\n", ["q", "q.demo"], "exact"),
        ("[install]\ninstall_lib = q\n[build]\nbuild-base = bb\n", ["q", "q.demo", "q.old"], "exact"),
        ("[install]\ninstall-lib = q\n", ["demo"], "guessed"),
        ("[install]\ninstall-purelib = q\nprefix = /usr\nhome = /home\nroot = r\n", ["demo"], "exact"),
        ("[install]\nextra-path = q\n", ["q", "q.demo"], "exact"),
        ("[install]\nextra-path = p,q\ninstall_lib = r\n", ["r", "r.q", "r.q.demo"], "exact"),
        ("[bdist_wheel]\nskip-build = 1\n", [], "exact"),
        ("[bdist_wheel]\nskip-build = no\n", ["demo"], "exact"),
        ("[bdist_wheel]\nskip-build = yes\n[build]\nbuild-base = bb\n", ["old"], "exact"),
        ("[install]\nskip-build = 1\n[install_lib]\nskip-build = 1\n", ["demo"], "exact"),
        (
            "[bdist_wheel]\nbdist-dir = bb/wheel\n[install]\ninstall_lib = q\n",
            ["inner", "inner.old", "q", "q.demo"],
            "derived",
        ),
        ("[build]\nbuild-base = ../bb\n", ["demo"], "guessed"),
        ("[aliases]\nbdist_wheel = build_py --build-lib=x bdist_wheel\n", ["demo"], "guessed"),
        ("[global]\ncommand-packages = mine\n", ["demo"], "guessed"),
    ]
    for setup_cfg, expected, grade in cases:
        with subtests.test(setup_cfg=setup_cfg):
            paths = ("demo/__init__.py", "bb/lib/old.py", "bb/wheel/inner/old.py")
            contents = files(*paths, pyproject=PACKAGE, setup_cfg=setup_cfg)
            assert modules_by(setuptools.installed, contents)[1] == expected
            assert grade_of(setuptools.installed, contents) == grade


def test_extra_path_is_followed_or_lowers_the_grade(subtests: pytest.Subtests):
    cases = [
        ("'q'", ["q", "q.demo"], "exact"),
        ("('p', 'q')", ["q", "q.demo"], "exact"),
        ("'p,q', options={'install': {'install_lib': 'r'}}", ["r", "r.q", "r.q.demo"], "exact"),
        ("None", ["demo"], "derived"),
        ("other()", ["demo"], "derived"),
    ]
    for extra_path, expected, grade in cases:
        with subtests.test(extra_path=extra_path):
            script = f"from setuptools import setup\nsetup(packages=['demo'], extra_path={extra_path})\n"
            contents = files("demo/__init__.py", setup_py=script)
            assert modules_by(setuptools.installed, contents)[1] == expected
            assert grade_of(setuptools.installed, contents) == grade


def test_build_py_folder_does_not_move_extension_modules(subtests: pytest.Subtests):
    compiled = "from setuptools import setup, Extension\nsetup(ext_modules=[Extension('fast', ['f.c'])])\n"
    cases = [
        ("[build_py]\nbuild-lib = build/lib\n", compiled, ["fast"], "exact"),
        ("[build_py]\nbuild-lib = build/lib.linux-x86_64-cpython-312\n", compiled, ["fast"], "guessed"),
        ("[build]\nbuild-lib = x\n[build_py]\nbuild-lib = x\n", compiled, ["demo", "fast"], "exact"),
        ("[build]\nbuild-platlib = x\n[build_py]\nbuild-lib = x/y\n", compiled, ["fast", "y", "y.demo"], "exact"),
        ("[build_py]\nbuild-lib = x\n", "import mine\nmine.setup(ext_modules=mine.more())\n", [], "guessed"),
    ]
    for setup_cfg, setup_py, expected, grade in cases:
        with subtests.test(setup_cfg=setup_cfg, setup_py=setup_py):
            contents = files("demo/__init__.py", pyproject=PACKAGE, setup_cfg=setup_cfg, setup_py=setup_py)
            assert modules_by(setuptools.installed, contents)[1] == expected
            assert grade_of(setuptools.installed, contents) == grade


@pytest.mark.nightly
def test_wheel_built_by_setuptools_has_the_same_modules(tmp_path: Path, subtests: pytest.Subtests):
    left = ["build/lib/old.py", "bb/lib/left.py", "x/inner.py", "x/demo/more.py", "bb/wheel/made.py"]
    sections = [
        "",
        "[build]\nbuild-base = bb\n",
        "[build]\nbuild-lib = x\n",
        "[build_py]\nbuild-lib = x\n",
        "[build_py]\nBUILD_LIB = x\n",
        "[build_py]\nbuild-lib = ./build//lib/\n",
        "[build_py]\nbuild-lib = build/lib/sub\n",
        "[build]\nbuild-lib = x\n[build_py]\nbuild-lib = x\n",
        "[build_py]\nbuild-lib = x\n[install_lib]\nbuild-dir = x\n",
        "[build_py]\nbuild-lib = x\n[install_lib]\nbuild-dir = bb/lib\n",
        "[bdist]\nbdist-base = bb\n",
        "[bdist_wheel]\nbdist-dir = bb/wheel\n",
        "[egg_info]\negg-base = x\n[build_ext]\ndebug = 1\n",
        "[build-py]\nbuild-lib = x\n",
        "[install]\ninstall_lib = q\n",
        "[install]\nextra-path = p,q\nprefix = /usr\ninstall-purelib = r\n",
        "[install_lib]\ninstall-dir = q\n",
        "[bdist_wheel]\nskip-build = 1\n",
        "[install]\nskip-build = 1\n[install_lib]\nskip-build = 1\n",
    ]
    built = "from setuptools import setup\nsetup(options={'build_py': {'build_lib': 'x'}})\n"
    projects = [{"setup_cfg": setup_cfg} for setup_cfg in sections]
    projects += [
        {"setup_py": built},
        {"setup_py": built, "setup_cfg": "[build_py]\nbuild-lib = build/lib\n"},
        {"setup_py": built, "setup_cfg": "[build_py]\nforce = 1\n[build]\nbuild-lib = x\n"},
    ]
    versioned = PACKAGE.replace(NAME, f'{NAME}version = "1.0"\n')
    for number, project in enumerate(projects):
        with subtests.test(project=project):
            contents = files("demo/__init__.py", *left, pyproject=versioned, **project)
            folder = tmp_path / str(number)
            wheel = built_wheel(folder, contents)
            assert modules_by(setuptools.installed, contents)[1] == list(read_path(wheel).modules or ())
            assert grade_of(setuptools.installed, contents) in {"exact", "derived"}


def built_wheel(folder: Path, contents: Mapping[str, str]) -> Path:
    """Write a project into `folder` and build its wheel with setuptools."""
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    build = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
    options: Any = {"check": True, "capture_output": True, "cwd": folder}
    subprocess.run([sys.executable, "-c", build, str(folder / "dist")], **options)
    [wheel] = (folder / "dist").glob("*.whl")
    return wheel


def test_options_in_setup_py_come_before_files(subtests: pytest.Subtests):
    cases = [
        ("{}", "", ["demo"], "exact"),
        ("{'bdist_wheel': {'universal': True}, 'py2app': {'argv': None}}", "", ["demo"], "exact"),
        ("{'build': {'build_lib': 'bb/lib'}}", "", ["demo", "old"], "exact"),
        ("dict(build_py=dict(build_lib='x'))", "", [], "exact"),
        ("{'build_py': {'build_lib': 'x'}}", "[build_py]\nbuild-lib = build/lib\n", ["demo"], "exact"),
        ("{'build_py': {'build_lib': 'x'}}", "[build_py]\nforce = 1\n", [], "exact"),
        ("{'install_lib': {'install_dir': 'x'}}", "", [], "exact"),
    ]
    for options, setup_cfg, expected, grade in cases:
        with subtests.test(options=options, setup_cfg=setup_cfg):
            setup_py = f"from setuptools import setup\nsetup(packages=['demo'], options={options})\n"
            contents = files("demo/__init__.py", "bb/lib/old.py", setup_py=setup_py, setup_cfg=setup_cfg)
            assert modules_by(setuptools.installed, contents)[1] == expected
            assert grade_of(setuptools.installed, contents) == grade


def test_options_in_pyproject_toml_come_after_setup_cfg():
    pyproject = f'{PACKAGE}[tool.distutils.install-lib]\nbuild-dir = "bb/lib"\n'
    contents = files("demo/__init__.py", "bb/lib/old.py", pyproject=pyproject, setup_cfg="[install_lib]\nbuild_dir=x\n")
    assert modules_by(setuptools.installed, contents)[1] == ["old"]


def test_arguments_that_change_commands_lower_the_grade(subtests: pytest.Subtests):
    for argument in (
        "options={'build_py': where()}",
        "options={'build_py': {'build_lib': x}}",
        "command_options={}",
        "script_args=[]",
        "cmdclass={'install_lib': x}",
    ):
        with subtests.test(argument=argument):
            script = f"from setuptools import setup\nsetup(packages=['demo'], {argument})\n"
            assert grade_of(setuptools.installed, files("demo/__init__.py", setup_py=script)) == "derived"
    setup_cfg = "[options]\npackages = demo\ncmdclass =\n    build_py = mine.Build\n"
    assert grade_of(setuptools.installed, files("demo/__init__.py", setup_cfg=setup_cfg)) == "derived"
