"""What cmeel puts into a wheel: all that CMake installs, in a folder of its own, and nothing in site-packages."""

from pypi_assets.distributions.record import ModulesGrade
from pypi_assets.distributions.source_tree import Installed, SourceTree

RULE = "cmeel prefix"


def installed(_: SourceTree) -> Installed:
    """No modules: `cmeel.prefix`, where the packages lie, is no dotted name. A `.pth` file of the distribution `cmeel`
    adds the folder in it to the path. A project may add files of its own, so that it is not exact."""
    return Installed(RULE, [], grade=ModulesGrade.DERIVED)
