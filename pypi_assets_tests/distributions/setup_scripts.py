"""Helpers for tests of setup.py: the start of a script, and the arguments found in it."""

from pypi_assets.distributions.setup_script import SetupArguments, read_setup_script

IMPORTS = "import os, sys\nfrom setuptools import Extension, find_packages, setup\n"


def arguments_of(script: str) -> SetupArguments:
    arguments = read_setup_script(IMPORTS + script)
    assert arguments.problem is None
    return arguments


def requires(script: str) -> tuple[str, ...] | None:
    return arguments_of(script).install_requires


def arguments_with(script: str, **files: str) -> SetupArguments:
    """Return the arguments of setup(). Names of `files` lack their suffix and have `__` for a slash."""
    contents = {f"{name.replace('__', '/')}.py": text.encode() for name, text in files.items()}
    arguments = read_setup_script(IMPORTS + script, contents)
    assert arguments.problem is None
    return arguments
