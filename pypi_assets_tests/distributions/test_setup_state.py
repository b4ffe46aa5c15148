"""The steps that following a setup.py may take."""

import pytest

from pypi_assets.distributions.setup_script import (
    SetupArguments,
    read_setup_script,
)


@pytest.mark.parametrize(
    "source",
    [
        b"x = [1]\n" + b"x = x + x\n" * 40 + b"setup(name=x)",
        b"x = 'a'\n" + b"x = x + x\n" * 60 + b"setup(name=x)",
        b"def f(): " + b"f(); " * 8 + b"\n" + b"f()\n" * 30_000 + b"setup()",
        b"setup()\n" * 30,
    ],
)
def test_scripts_that_take_too_many_steps_or_calls_are_a_problem(source):
    assert read_setup_script(source) == SetupArguments(problem="setup.py is too long or too deep")
