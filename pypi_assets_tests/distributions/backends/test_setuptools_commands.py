"""What an earlier build has left in an sdist, and options of commands, change what setuptools installs."""

import pytest

from pypi_assets.distributions.backends import setuptools
from pypi_assets_tests.distributions.backends.projects import NAME, files, grade_of, modules_by

PACKAGE = f'{NAME}[tool.setuptools]\npackages = ["demo"]\n'
EXTENSION = 'from setuptools import setup, Extension\nsetup(ext_modules=[Extension("fast", ["f.c"])])\n'


def test_folders_of_an_earlier_build_are_installed(subtests: pytest.Subtests):
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


def test_options_of_commands_are_followed_or_leave_a_doubt(subtests: pytest.Subtests):
    cases = [
        ("[build]\nbuild-base = bb\n", ["demo", "old"], "exact"),
        ("[build]\nbuild_lib = bb/lib\n", ["demo", "old"], "exact"),
        ("[build]\nbuild-purelib = ./bb/lib\n", ["demo", "old"], "exact"),
        ("[install_lib]\nbuild-dir = bb/lib\n", ["old"], "exact"),
        ("[build]\nbuild-base = bb\n[install_lib]\nbuild-dir = bb/lib\n", ["demo", "old"], "exact"),
        ("[bdist_wheel]\nbdist-dir = bb/lib\n", ["demo", "old"], "derived"),
        ("[bdist_wheel]\nuniversal = 1\n[aliases]\ntest = pytest\n[install]\noptimize = 1\n", ["demo"], "exact"),
        ("[egg_info]\ntag_build = dev\ntag_date = 0\n", ["demo"], "exact"),
        ("[build_py]\nbuild-lib = bb/lib\n", ["demo"], "guessed"),
        ("[install]\ninstall-lib = bb\n", ["demo"], "guessed"),
        ("[bdist_wheel]\nskip-build = 1\n", ["demo"], "guessed"),
        ("[build]\nbuild-base = ../bb\n", ["demo"], "guessed"),
        ("[aliases]\nbdist_wheel = build_py --build-lib=x bdist_wheel\n", ["demo"], "guessed"),
        ("[global]\ncommand-packages = mine\n", ["demo"], "guessed"),
    ]
    for setup_cfg, expected, grade in cases:
        with subtests.test(setup_cfg=setup_cfg):
            contents = files("demo/__init__.py", "bb/lib/old.py", pyproject=PACKAGE, setup_cfg=setup_cfg)
            assert modules_by(setuptools.installed, contents)[1] == expected
            assert grade_of(setuptools.installed, contents) == grade


def test_options_in_pyproject_toml_come_after_setup_cfg():
    pyproject = f'{PACKAGE}[tool.distutils.install-lib]\nbuild-dir = "bb/lib"\n'
    contents = files("demo/__init__.py", "bb/lib/old.py", pyproject=pyproject, setup_cfg="[install_lib]\nbuild_dir=x\n")
    assert modules_by(setuptools.installed, contents)[1] == ["old"]


def test_arguments_that_change_commands_leave_a_doubt(subtests: pytest.Subtests):
    for argument in ("options={}", "command_options={}", "script_args=[]", "cmdclass={'install_lib': x}"):
        with subtests.test(argument=argument):
            script = f"from setuptools import setup\nsetup(packages=['demo'], {argument})\n"
            assert grade_of(setuptools.installed, files("demo/__init__.py", setup_py=script)) == "derived"
    setup_cfg = "[options]\npackages = demo\ncmdclass =\n    build_py = mine.Build\n"
    assert grade_of(setuptools.installed, files("demo/__init__.py", setup_cfg=setup_cfg)) == "derived"
