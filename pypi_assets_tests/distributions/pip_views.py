"""Runs real pip on many wheels in one process: the metadata that its resolver reads, and the files that it installs.

pip's own function installs each wheel into its own scratch folder. No code of a wheel is run. `against_pip` compares
the result with records.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def pip_views(wheels: Mapping[str, bytes], folder: Path, python: str = sys.executable) -> dict[str, dict[str, Any]]:
    """Return, by name, pip's view of each content in `wheels`. All are wheels of demo 1.0."""
    paths = {}
    for number, (name, content) in enumerate(wheels.items()):
        path = folder / str(number) / "wheel" / "demo-1.0-py3-none-any.whl"
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
        paths[name] = str(path)
    answer = folder / "views.json"
    (folder / "paths.json").write_text(json.dumps(paths))
    command = [python, "-I", "-W", "ignore", "-c", _DRIVER, str(folder / "paths.json"), str(answer)]
    subprocess.run(command, check=True, cwd=folder, capture_output=True, timeout=300)
    views: dict[str, dict[str, Any]] = json.loads(answer.read_text())
    return views


_DRIVER = """
import json, logging, os, sys
from importlib.metadata import distributions
from pathlib import Path
from zipfile import ZipFile
from pip._internal.metadata import FilesystemWheel, get_wheel_distribution
from pip._internal.models.scheme import Scheme
from pip._internal.operations.install.wheel import install_wheel
from pip._vendor.packaging.version import Version

logging.disable(logging.CRITICAL)

def installed(each):
    origin = each.read_text("direct_url.json")
    return each.metadata["Name"], origin and json.loads(origin)["url"]

def view(path):
    root = Path(path).parent.parent / "prefix"
    site = root / "lib" / "python3.11" / "site-packages"
    site.mkdir(parents=True)
    found = {"refusal": None, "requires_dist": [], "provides_extra": [], "entry_points": [], "paths": [], "outside": []}
    try:
        read = get_wheel_distribution(FilesystemWheel(path), "demo")
        metadata = read.metadata
        if read.canonical_name != "demo" or read.version != Version("1.0"):
            raise ValueError("inconsistent metadata")
        list(read.iter_dependencies(list(read.iter_provided_extras())))
        found["requires_dist"] = [each.strip() for each in metadata.get_all("Requires-Dist", [])]
        found["provides_extra"] = [each.strip() for each in metadata.get_all("Provides-Extra", [])]
        found["entry_points"] = [(each.group, each.name, each.value) for each in read.iter_entry_points()]
        scheme = Scheme(str(site), str(site), str(root / "include"), str(root / "bin"), str(root))
        install_wheel("demo", path, scheme, "demo", pycompile=False, warn_script_location=False)
    except Exception as error:
        found["refusal"] = f"{type(error).__name__}: {error}"
    else:
        found["distributions"] = [installed(each) for each in distributions(path=[str(site)])]
    files = [each for each in root.rglob("*") if each.is_file()]
    found["paths"] = sorted(str(each.relative_to(site)) for each in files if each.is_relative_to(site))
    found["outside"] = sorted(str(each.relative_to(root)) for each in files if not each.is_relative_to(site))
    return found

with open(sys.argv[1]) as file:
    paths = json.load(file)
views = {name: view(path) for name, path in paths.items()}
with open(sys.argv[2], "w") as file:
    json.dump(views, file, ensure_ascii=True)
"""
