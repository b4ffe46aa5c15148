"""Strategies that draw changes to the files of a small catalog, and names to query."""

from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from pypi_assets_tests.small_catalog import SmallCatalog

PROJECTS = ("Demo.Pkg", "other", "third", "types-demo", "other-stubs")
VERSIONS = ("1.0", "1.0.0", "2", "10", "no version")
MODULES = ("demo", "demo.a", "demo.a.b", "other", "tests", "größe", "requests>=2")
QUESTIONS = (*MODULES, "demo.b", "dem", "demo.", ".demo", "", "unknown", "m" * 600, "half \udc80", "nul\0")
REQUIREMENTS = (
    "requests>=2",
    "demo",
    "Demo_Pkg ; python_version < '3'",
    "demo.pkg; extra == 'x'",
    "demo-pkg[y]>1",
    "third @ https://example.org/third.zip",
    "-",
    "x" * 600,
)
REQUIRED = (*PROJECTS, "demo_pkg", "requests", "demo", "unknown", "half \udc80", "nul\0", "")
files = st.fixed_dictionaries(
    {
        "project": st.sampled_from(PROJECTS),
        "version": st.sampled_from(VERSIONS),
        "suffix": st.sampled_from([".tar.gz", "-py3-none-any.whl", "-cp311-cp311-win_amd64.whl"]),
        "modules": st.none() | st.lists(st.sampled_from([*MODULES, "m" * 600]), max_size=4).map(tuple),
        "requires_dist": st.none() | st.lists(st.sampled_from(REQUIREMENTS), max_size=3).map(tuple),
        "requires_python": st.sampled_from([None, ">=3.8"]),
        "stubs": st.sampled_from([(), (), ("demo",), ("other", "demo.a")]),
        "import_names": st.sampled_from([None, None, ("demo",), ("other", "demo.a ; private")]),
        "refusals": st.sampled_from([(), (), ("pip skips: odd",), ("pip skips: odd", "uv fails: odd")]),
    }
)
batches = st.lists(
    st.lists(st.tuples(files, st.sampled_from(["add", "remove", "yank"])), min_size=1, max_size=6),
    min_size=1,
    max_size=3,
)


def made_of(small: SmallCatalog, batches: Any) -> Iterator[int]:
    """Apply the drawn changes to a catalog and yield the serial after each batch."""
    serial, state = 0, dict[str, str]()
    for batch in batches:
        for file, action in batch:
            serial += 1
            filename = f"{file['project']}-{file['version']}{file['suffix']}"
            if filename not in state:
                small.add(serial, filename=filename, **{k: v for k, v in file.items() if k != "suffix"})
                state[filename] = "live"
            elif action == "remove" and state[filename] != "removed":
                small.remove(serial, filename)
                state[filename] = "removed"
            elif action == "yank" and state[filename] == "live":
                small.yank(serial, filename)
                state[filename] = "yanked"
        small.complete(serial)
        yield serial
