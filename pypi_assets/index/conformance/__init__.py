"""Checks for kinds of index that other packages add. docs/indexes.md explains how to run them.

class TestShelf(IndexConformance):
    kind = KIND
    index_path = "/shelf/"

    def answer(self, world, request):
        return shelf_server.answer(world, request)
"""

from pypi_assets.index.conformance.lab import ConformanceError, Lab
from pypi_assets.index.conformance.site import Request, Site, SiteAnswer, serving
from pypi_assets.index.conformance.suite import IndexConformance, checks, failures
from pypi_assets.index.conformance.world import World, WorldEvent, WorldFile, world_of

__all__ = [
    "ConformanceError",
    "IndexConformance",
    "Lab",
    "Request",
    "Site",
    "SiteAnswer",
    "World",
    "WorldEvent",
    "WorldFile",
    "checks",
    "failures",
    "serving",
    "world_of",
]
