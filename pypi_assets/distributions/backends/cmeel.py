"""Describe wheels built by cmeel: all that CMake installs lies in a separate folder, and nothing in site-packages."""

from pypi_assets.distributions.record import ModulesGrade
from pypi_assets.distributions.source_tree import Installed, SourceTree

RULE = "cmeel prefix"


def installed(_: SourceTree) -> Installed:
    """Return a result without modules: `cmeel.prefix`, the folder that holds the packages, is not a dotted name.

    A `.pth` file of the distribution `cmeel` adds the folder inside of it to the path. The result is not exact because
    a project may add other files.
    """
    return Installed(RULE, [], grade=ModulesGrade.DERIVED)
