"""The pins that an environment installs, by their markers and by the requirements that lead to them."""

from pathlib import Path

import pytest

from pypi_assets.locks.environments import named_environment
from pypi_assets.locks.lock_content import LockError
from pypi_assets.locks.lock_formats import read_lock
from pypi_assets.locks.pins import Graph, Lock, Pin, RemarkKind, Requires, selected_pins
from pypi_assets_tests.counted_steps import growth
from pypi_assets_tests.locks import samples
from pypi_assets_tests.naming import naming


@pytest.mark.parametrize(
    ("python", "platform", "expected"),
    [
        (None, None, ["extra-dep", "never", "old", "six==1.0", "six==2.0", "yamlish"]),
        ("3.12", "linux", ["six==2.0", "yamlish"]),
        ("3.12", None, ["extra-dep", "six==2.0", "yamlish"]),
        ("3.9", "windows", ["extra-dep", "old", "six==1.0", "yamlish"]),
        (None, "linux", ["old", "six==1.0", "six==2.0", "yamlish"]),
    ],
)
def test_workspace_installs_the_closure_of_its_members(
    tmp_path: Path, python: str | None, platform: str | None, expected: list[str]
) -> None:
    (tmp_path / "uv.lock").write_text(samples.UV)
    pins, remarks = selected_pins(read_lock(tmp_path / "uv.lock"), named_environment(python, platform))
    assert [pin.text if pin.name == "six" else pin.name for pin in pins] == expected
    assert remarks == ()


UV_ROOTS = """
version = 1
{manifest}
[[package]]
name = "member"
version = "1"
source = {{ {source} = "member" }}
[package.optional-dependencies]
fast = [{{ name = "extra" }}]
[package.dev-dependencies]
test = [{{ name = "grouped", marker = "os_name == 'posix'" }}]
[[package]]
name = "extra"
version = "1"
source = {{ registry = "https://example.org/simple" }}
[[package]]
name = "grouped"
version = "1"
source = {{ registry = "https://example.org/simple" }}
[package.optional-dependencies]
all = [{{ name = "extra" }}]
"""
UV_INDEXES = """
version = 1
[[package]]
name = "app"
version = "1"
source = { virtual = "." }
dependencies = [
    { name = "torch", version = "2", source = { registry = "https://cpu.example.org" }, marker = "os_name == 'nt'" },
    { name = "torch", version = "2", source = { registry = "https://gpu.example.org" }, marker = "os_name != 'nt'" },
]
[[package]]
name = "driver"
version = "1"
source = { registry = "https://gpu.example.org" }
[[package]]
name = "torch"
version = "2"
source = { registry = "https://gpu.example.org" }
dependencies = [{ name = "driver" }]
[[package]]
name = "torch"
version = "2"
source = { registry = "https://cpu.example.org" }
"""


def selected_of_uv(folder: Path, text: str, platform: str) -> list[str]:
    (folder / "uv.lock").write_text(text)
    pins, _ = selected_pins(read_lock(folder / "uv.lock"), named_environment("3.12", platform))
    return [one.name for one in pins]


def test_each_root_of_a_uv_lock_leads_to_its_requirements(tmp_path: Path, subtests: pytest.Subtests) -> None:
    group = "[manifest.dependency-groups]\ndev = [{ name = 'Grouped', extras = ['all'], marker = \"os_name == 'nt'\" }]"
    script = "[manifest]\nrequirements = [{ name = 'grouped', specifier = '>=1' }]"
    cases = [
        ("editable", "", "linux", ["extra", "grouped"]),
        ("editable", "", "windows", ["extra"]),
        ("directory", "[manifest]\nmembers = ['member', 'other']", "linux", ["extra", "grouped"]),
        ("directory", group, "windows", ["extra", "grouped"]),
        ("directory", group, "linux", []),
        ("directory", script, "linux", ["grouped"]),
        ("directory", "", "windows", ["extra", "grouped"]),  # without a root, all packages count
    ]
    for source, manifest, platform, expected in cases:
        with subtests.test(source=source, manifest=manifest, platform=platform):
            text = UV_ROOTS.format(source=source, manifest=manifest)
            assert selected_of_uv(tmp_path, text, platform) == expected


def test_package_of_two_indexes_has_the_requirements_of_each(tmp_path: Path) -> None:
    assert selected_of_uv(tmp_path, UV_INDEXES, "linux") == ["driver", "torch"]
    assert selected_of_uv(tmp_path, UV_INDEXES, "windows") == ["torch"]


def pin(version: str, marker: str | None = None) -> Pin:
    return Pin("a", "a", version, f"line {version}", marker)


def test_markers_select_pins() -> None:
    lock = Lock("r.txt", (pin("1", "os_name == 'nt'"), pin("2", "os_name == 'posix'")))
    assert [selected.version for selected in selected_pins(lock, named_environment(platform="linux"))[0]] == ["2"]
    assert len(selected_pins(lock, named_environment("3.12"))[0]) == 2


@pytest.mark.parametrize(
    ("pins", "python", "count"),
    [
        ((pin("1", "os_name == 'posix'"), pin("2", "python_version > '3'")), "3.12", 1),
        ((pin("1", "os_name == 'posix'"), pin("2", "python_version > '3'")), None, 0),
        ((pin("1"), pin("2")), None, 1),
    ],
)
def test_conflicting_versions_are_named(pins: tuple[Pin, ...], python: str | None, count: int) -> None:
    remarks = selected_pins(Lock("pylock.toml", pins), named_environment(python, python and "linux"))[1]
    assert [remark.kind for remark in remarks] == [RemarkKind.TWO_VERSIONS] * count


def test_dense_graph_takes_linear_time() -> None:
    def select(count: int) -> None:
        nodes = tuple(("x", f"{number}", "") for number in range(count))
        root, to_all = ("app", "1", ""), (Requires(("x", None, "")),)
        requires = dict.fromkeys((*nodes, root), to_all)
        pins = tuple(Pin("x", "x", version, "line 1") for _, version, _ in nodes)
        lock = Lock("uv.lock", pins, (), Graph((root,), requires, {"x": nodes}))
        assert selected_pins(lock, named_environment("3.12", "linux"))[0] == pins

    assert growth(select, 50) < 5


PYLOCK = """
lock-version = "1.0"
created-by = "a test"
%s
[[packages]]
name = "plain"
version = "1.0"
%s
wheels = [{ url = "https://example.org/plain-1.0-py3-none-any.whl", hashes = { sha256 = "dd" } }]
"""
UV = """
version = 1
%s
[[package]]
name = "plain"
version = "1.0"
source = { registry = "https://example.org/simple" }
"""
POETRY = """
[[package]]
name = "plain"
version = "1.0"
[metadata]
lock-version = "2.1"
%s
"""


def test_lock_is_rejected_outside_its_environments(tmp_path: Path, subtests: pytest.Subtests) -> None:
    new, windows, either = 'requires-python = ">=3.13"', "sys_platform == 'win32'", "os_name == 'posix'"
    skipped = f'{new}\nmarker = "{windows}"'
    cases = [
        ("pylock.toml", PYLOCK % (new, ""), False),
        ("pylock.toml", PYLOCK % ('requires-python = ">=3.12"', ""), True),
        ("pylock.toml", PYLOCK % (f'environments = ["{windows}"]', ""), False),
        ("pylock.toml", PYLOCK % (f'environments = ["{windows}", "{either}"]', ""), True),
        ("pylock.toml", PYLOCK % ("", new), False),
        ("pylock.toml", PYLOCK % ("", skipped), True),
        ("uv.lock", UV % new, False),
        ("uv.lock", UV % f'supported-markers = ["{windows}"]', False),
        ("uv.lock", UV % f'resolution-markers = ["{windows}"]', True),
        ("poetry.lock", POETRY % 'python-versions = "^3.13"', False),
        ("poetry.lock", POETRY % 'python-versions = "~3.8 || ^3.11"', True),
        ("poetry.lock", POETRY % 'python-versions = "*"', True),
    ]
    for filename, text, holds in cases:
        with subtests.test(filename=filename, text=text):
            (tmp_path / filename).write_text(text)
            lock = read_lock(tmp_path / filename)
            assert [pin.text for pin in selected_pins(lock, named_environment())[0]] == ["plain==1.0"]
            if holds:
                selected_pins(lock, named_environment("3.12", "linux"))
                continue
            with pytest.raises(LockError, match=naming(filename)):
                selected_pins(lock, named_environment("3.12", "linux"))
