"""The order in which pip installs, compared with what pip does."""

import re
import subprocess
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.locks.environments import ANY_ENVIRONMENT, named_environment
from pypi_assets.lookup.install_order import Installed, pip_order
from pypi_assets_tests.builders import make_wheel
from pypi_assets_tests.counted_steps import growth

DISTRIBUTIONS = [
    Installed("aa", ("bb",)),
    Installed("bb", ("cc; extra == 'x'",)),
    Installed("cc", has_requires_python=True),
    Installed("dd"),
    Installed("ee", ("aa", "not a requirement;"), has_requires_python=True),
    Installed("ff", ("gg",)),
    Installed("gg", ("ff",)),
    Installed("hh", ("bb[x]",)),
    Installed("ii", ("ff", "dd; python_version < '3'")),
]


def test_it_is_what_pip_prints(tmp_path: Path) -> None:
    for one in DISTRIBUTIONS:
        requires = [text for text in one.requires_dist if not text.endswith(";")]
        python = ">=3.8" if one.has_requires_python else None
        make_wheel(tmp_path, one.name, "1", requires_dist=requires, requires_python=python, provides_extra=["x"])
    command = [sys.executable, "-m", "pip", "install", "--isolated", "--no-index", "--no-cache-dir", "--dry-run"]
    names = [f"{one.name}==1" for one in DISTRIBUTIONS]
    target = ["--find-links", str(tmp_path), "--ignore-installed", "--no-compile", "--target", str(tmp_path / "site")]
    command.remove("--dry-run")
    done = subprocess.run([*command, *target, *names], capture_output=True, text=True, check=True)
    [printed] = re.findall(r"Installing collected packages: (.*)", done.stdout)
    assert printed.split(", ") == pip_order(DISTRIBUTIONS, named_environment("3.12"))


names = st.sampled_from(["a", "b", "c", "d"])


@given(st.dictionaries(names, st.lists(names.map(lambda name: f"{name}>=1"), max_size=3)))
def test_what_is_required_comes_first_but_in_circles(required: dict[str, list[str]]) -> None:
    order = pip_order([Installed(name, tuple(texts)) for name, texts in required.items()], ANY_ENVIRONMENT)
    assert sorted(order) == sorted(required)
    direct = {name: {text[0] for text in texts} & required.keys() for name, texts in required.items()}
    reached = {name: set(found) for name, found in direct.items()}
    for _ in required:
        for found in reached.values():
            found |= {further for one in tuple(found) for further in direct[one]}
    for name, others in direct.items():
        for other in others:
            in_circle = any(one in reached[one] for one in (other, *reached[other]))
            assert in_circle or order.index(other) < order.index(name)


def test_the_work_grows_with_the_distributions_alone_however_deep_they_require_each_other() -> None:
    def order(count: int) -> None:
        chain = [Installed(f"p{number}", (f"p{number + 1}",)) for number in range(count)]
        assert pip_order(chain, ANY_ENVIRONMENT) == [one.name for one in reversed(chain)]

    assert growth(order, 50) < 5
