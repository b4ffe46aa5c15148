"""The extension modules that numpy.distutils builds: a setup.py in each package adds them to its Configuration."""

import re

from pypi_assets.distributions.source_tree import SourceTree, joined

_ADDED = re.compile(rb"\badd_extension\(\s*+[\"']([A-Za-z_][\w.]*+)[\"']")


def configured_extensions(tree: SourceTree, source: str) -> list[str]:
    """The dotted names of those that stand literally in calls of add_extension(), in packages below `source`."""
    start = f"{source}/" if source else ""
    names = []
    for path, content in tree.files.items():
        folder, _, filename = path.rpartition("/")
        if filename == "setup.py" and b"Configuration" in content and f"{folder}/".startswith(start):
            inside = folder[len(start) :] if folder in tree.packages else ""
            if inside or folder == source:
                names += [joined(inside, name.decode()).replace("/", ".") for name in _ADDED.findall(content)]
    return names
