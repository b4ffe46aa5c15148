"""What is kept between rounds: the catalog's database keeps all that the protocol names."""

from pypi_assets.catalog.observed.observations import Observations
from pypi_assets.index.observing.memory import Memory


def test_the_catalog_gives_all_that_is_named() -> None:
    named = {name for name in dir(Memory) if not name.startswith("_")}
    assert named <= set(dir(Observations))
