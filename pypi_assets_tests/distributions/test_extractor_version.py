"""The same bytes give the same record while EXTRACTOR_VERSION is unchanged. Reprocessing relies on this."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from pypi_assets.distributions.extract import ServedMetadata, decode_extract, encode_extract
from pypi_assets.distributions.reader import make_record, read_distribution, read_path
from pypi_assets.distributions.record import EXTRACTOR_VERSION, DistributionRecord
from pypi_assets.distributions.record_building import record_to_json
from pypi_assets_tests.builders import make_egg, make_sdist, make_wheel

DIGESTS = {
    2: "1c2575e67b8ed205e8545108d378d94fecadbad3b0f960f6f3be4e110227c7a4",
    3: "162c31892bf9ff8c0a23275fade95da61b065b176295a5b0de25fd02218d4749",
    4: "d8b03fce4eb4287e7c9825e58823d4fcc6a053d4d2c17e92a1b6b2f33308a790",
    5: "bea2797b03562a0c3e425161aa0c2ac2ca1790198b13cf22b2260ca809c73d00",
    6: "1f121c1c92832cbbe2e2ae1b58bfa11a753e5de97dbe9ee7422481d5dc6baaf8",
    7: "cad7bac62e913c010b036fc10a436227e3f48a2d8c5108dc007bfd1c2a72b1a4",
    8: "bca3ccabe7734ead060671846a986620d207007eb9cb4f86d009ac9c15e65ff5",
    9: "d3415203873c693a02e280b8d4541e6beff31983c1008217c3955dfa9e442421",
    10: "1dcb887dd97761760268455580eeb2c6d2d524edbd5dc2995b8c32b6be25fc52",
    11: "37730f16fba615e3e1df752af758cbb6d54f495c831c3a6dccefedafc46f5a9f",
    12: "83b2686373e468680506f928ec3e9b31bbf69df6f2cb3f5a56aeb1b694c601e9",
    13: "dcdb29f44c9897cb474e5f4fc87bf11758d8911eb3e348126f51c5b5ccf5e2ca",
}
"""The digest of all records by version. Old digests stay, so that no version is used twice."""

BACKENDS = {
    "setuptools": """
        [build-system]
        build-backend = "setuptools.build_meta"
        [tool.setuptools.packages.find]
        where = ["src"]
        exclude = ["*.extra"]
        """,
    "modules": """
        [build-system]
        build-backend = "setuptools.build_meta"
        [tool.setuptools]
        py-modules = ["tools"]
        packages = ["inside"]
        package-dir = {"inside" = "src/demo/inner"}
        """,
    "poetry": """
        [build-system]
        build-backend = "poetry.core.masonry.api"
        [tool.poetry]
        name = "demo"
        version = "1.0"
        packages = [{include = "demo", from = "src"}]
        [tool.poetry.dependencies]
        python = "^3.8"
        requests = {version = "^2.1", optional = true, extras = ["socks"]}
        attrs = ">=20,<30"
        uvloop = {version = "*", platform = "!=win32"}
        [tool.poetry.extras]
        net = ["requests"]
        """,
    "flit": """
        [build-system]
        build-backend = "flit_core.buildapi"
        [tool.flit.module]
        name = "demo.inner"
        """,
    "whey": """
        [build-system]
        build-backend = "whey"
        [tool.whey]
        source-dir = "src"
        """,
    "hatchling": """
        [build-system]
        build-backend = "hatchling.build"
        [tool.hatch.build.targets.wheel]
        packages = ["src/demo"]
        exclude = ["*/extra"]
        """,
    "pdm": """
        [build-system]
        build-backend = "pdm.backend"
        [tool.pdm.build]
        package-dir = "src"
        """,
    "maturin": """
        [build-system]
        build-backend = "maturin"
        [tool.maturin]
        python-source = "src"
        module-name = "demo._native"
        """,
    "uv_build": """
        [build-system]
        build-backend = "uv_build"
        [tool.uv.build-backend]
        module-name = "demo"
        """,
    "scikit_build_core": """
        [build-system]
        build-backend = "scikit_build_core.build"
        [tool.scikit-build]
        wheel.packages = ["src/demo"]
        """,
    "mesonpy": """
        [build-system]
        build-backend = "mesonpy"
        """,
    "another": """
        [build-system]
        build-backend = "builder"
        backend-path = ["."]
        """,
}
PROJECT = """
        [project]
        name = "demo"
        version = "1.0"
        description = "A demonstration"
        requires-python = ">=3.9"
        dependencies = ["attrs>=20 ; python_version < '3.12'", "requests [socks]"]
        [project.optional-dependencies]
        test = ["pytest"]
        [project.scripts]
        demo = "demo:main"
        """
FACTS = """
        [project]
        name = "demo"
        license = {text = "MIT"}
        classifiers = ["License :: OSI Approved", "Topic :: Other"]
        import-names = ["demo ; private"]
        dynamic = ["version", "scripts"]
        [project.urls]
        Docs = "https://example.org/docs"
        """
SOURCES = {
    "src/demo/__init__.py": "",
    "src/demo/inner/__init__.py": "",
    "src/demo/inner/deep.py": "",
    "src/demo/inner/typed.pyi": "",
    "src/demo/extra/more.py": "",
    "src/demo/_fast.pyx": "",
    "src/other-name/part.py": "",
    "demo/inner.py": "",
    "tools.py": "",
    "tests/test_demo.py": "",
    "docs/conf.py": "",
    "meson.build": "project('demo', 'c')\npy = import('python').find_installation()\n"
    "py.install_sources('src/demo/__init__.py', subdir: 'demo')\n",
}
HATCH_TOML = '[build.targets.wheel]\npackages = ["src/demo"]\n'
SETUP_CFG = """
[metadata]
name = demo
version = 1.0
[options]
packages = find:
package_dir =
    = src
install_requires =
    attrs>=20
    requests; python_version < "3"
[options.packages.find]
where = src
[options.extras_require]
test = pytest
[options.entry_points]
console_scripts = demo = demo:main
My-Group = Name = demo:it
"""
SETUP_PY = """
from setuptools import setup, find_packages
REQUIRES = ["attrs>=20"]
setup(name="demo", version="1.0", py_modules=["tools"], packages=find_packages("src", exclude=["*.extra"]),
      package_dir={"": "src"}, install_requires=REQUIRES + ["six"], extras_require={"test": ["pytest"]})
"""
EGG_INFO = {
    "demo.egg-info/PKG-INFO": "Metadata-Version: 1.1\nName: demo\nVersion: 1.0\n",
    "demo.egg-info/requires.txt": "attrs>=20\n\n[test]\npytest\n\n[:python_version < '3']\nsix\n",
    "demo.egg-info/top_level.txt": "demo\ntools\n",
    "demo.egg-info/SOURCES.txt": "setup.py\ntools.py\nsrc/demo/__init__.py\n",
}
INSTALLED = {
    "demo/__init__.py": "",
    "demo/core.cpython-311-x86_64-linux-gnu.so": "",
    "demo/old.abi3.so": "",
    "demo/windows.cp311-win_amd64.pyd": "",
    "demo/typed.pyi": "",
    "demo-stubs/__init__.pyi": "",
    "space/inner/part.py": "",
    "not-a-name/part.py": "",
    "demo/2to3.py": "",
    "demo-1.0.data/purelib/pure.py": "",
    "demo-1.0.data/platlib/plat/__init__.py": "",
    "demo-1.0.data/scripts/demo-run": "",
    "demo-1.0.data/headers/demo.h": "",
    "demo-start.pth": "import demo",
}
HEADERS = [
    ("Dynamic", "Requires-Dist"),
    ("Import-Name", "demo ; private"),
    ("Import-Namespace", "space"),
    ("Requires-Dist", "lxml (>=3.3.4)"),
    ("Requires-Dist", "not a requirement !"),
    ("Requires-Python", ">=3.6"),
    ("Summary", "One\n        and another line"),
    ("License-Expression", "MIT"),
    ("License", "Many\n        lines" + " and words" * 200),
    ("Classifier", "License :: OSI Approved :: MIT License"),
    ("Classifier", "Topic :: Other"),
    ("Home-page", "https://example.org"),
    ("Download-URL", "UNKNOWN"),
    ("Project-URL", "Docs, https://example.org/docs"),
    ("Project-URL", "Long, " + "x" * 3000),
]


def _pyproject(name: str, toml: str) -> str:
    return "\n".join(line.strip() for line in (toml if name == "poetry" else toml + PROJECT).splitlines())


def built(folder: Path) -> Iterator[Path]:
    """Build distributions of many kinds. Add to them only together with a new version."""
    entry_points = "[console_scripts]\ndemo = demo:main [cli]\n[broken\nx\n"
    yield make_wheel(
        folder,
        "demo",
        "1.0",
        files=INSTALLED,
        extra_headers=HEADERS,
        entry_points=entry_points,
        top_level=["demo", "space"],
        provides_extra=["cli"],
    )
    yield make_wheel(folder, "demo", "1.1", metadata=b"\xff\xfenothing")
    yield make_wheel(folder, "demo", "1.2", metadata="Name: other\nVersion: 3\nRequires-Dist: a\0b\n\nBody: x\n")
    yield make_egg(
        folder,
        "demo",
        "1.0",
        files={"demo/__init__.py": "", "demo/gone.pyc": ""},
        requires=EGG_INFO["demo.egg-info/requires.txt"],
        entry_points=entry_points,
        top_level=["demo"],
    )
    for name, toml in BACKENDS.items():
        files = SOURCES | {"pyproject.toml": _pyproject(name, toml)}
        yield make_sdist(folder, f"demo-{name}", "1.0", files=files, pkg_info=False)
    yield make_sdist(folder, "demo-static", "1.0", files=SOURCES, metadata_version="2.2", requires_dist=["attrs"])
    yield make_sdist(folder, "demo-cfg", "1.0", files=SOURCES | {"setup.cfg": SETUP_CFG, "setup.py": "setup()"})
    yield make_sdist(folder, "demo-py", "1.0", files=SOURCES | {"setup.py": SETUP_PY}, format="tar.bz2")
    yield make_sdist(folder, "demo-egg", "1.0", files=SOURCES | EGG_INFO | {"setup.py": "exec(x)"}, format="zip")
    files = SOURCES | {"pyproject.toml": "\n".join(line.strip() for line in FACTS.splitlines()), "setup.cfg": SETUP_CFG}
    yield make_sdist(folder, "demo-facts", "1.0", files=files, pkg_info=False)
    yield make_sdist(folder, "demo-lzma", "1.0", format="tar.lzma")
    pyproject = _pyproject("hatchling", BACKENDS["hatchling"])
    hatch = SOURCES | {"pyproject.toml": pyproject, "hatch.toml": HATCH_TOML, ".gitignore": "deep.py\n"}
    yield make_sdist(folder, "demo-hatch", "1.0", files=hatch, pkg_info=False)
    extra = {"setup.py": SETUP_PY.replace("install_requires", "extra_path='extra', install_requires")}
    yield make_sdist(folder, "demo-extra", "1.0", files=SOURCES | extra)
    yield make_sdist(folder, "demo-bare", "1.0", files={"demo_bare/__init__.py": "", "test/x.py": ""}, pkg_info=False)
    for name in ("broken-1.0.tar.gz", "broken-1.0-py3-none-any.whl", "broken-1.0.win32.exe", "no name"):
        path = folder / name
        path.write_bytes(b"no archive")
        yield path


def read_with_served_metadata(path: Path) -> DistributionRecord:
    """Return the record of a file if the index serves other metadata next to it."""
    with path.open("rb") as file:
        extract = read_distribution(file, path.name, hash_content=False).extract
    served = b"Metadata-Version: 2.2\nName: demo\nVersion: 1.0\nRequires-Python: >=3.9\nRequires-Dist: served\n"
    extract.served = ServedMetadata(served, is_as_stated=True)
    return make_record(extract, path.name)


def content(record: DistributionRecord) -> dict[str, object]:
    """Return all values of a record except those that depend on the file's compression."""
    return record_to_json(record) | {"sha256": None, "size": None, "metadata_version": record.metadata_version}


def test_records_change_only_with_the_version(tmp_path: Path) -> None:
    records = [content(read_path(path)) for path in built(tmp_path)]
    both = make_wheel(tmp_path, "demo", "1.0"), make_sdist(tmp_path, "demo", "1.0", requires_dist=["own"])
    records += [content(read_with_served_metadata(path)) for path in both]
    digest = hashlib.sha256(json.dumps(records, sort_keys=True).encode()).hexdigest()
    assert digest == DIGESTS.get(EXTRACTOR_VERSION), (
        "The records of the same bytes have changed: raise EXTRACTOR_VERSION in distributions/record.py, so"
        f" that a reprocess finds what is stored, and add the new digest here: {EXTRACTOR_VERSION + 1}: {digest!r}"
    )


def test_stored_extract_gives_the_same_record(tmp_path: Path) -> None:
    for path in built(tmp_path):
        with path.open("rb") as file:
            reading = read_distribution(file, path.name, project="demo", hash_content=False)
        again = make_record(decode_extract(encode_extract(reading.extract)), path.name, project="demo")
        assert content(again) == content(reading.record)
