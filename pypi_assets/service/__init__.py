"""The HTTP service: stateless, read-only processes that answer from published versions or the catalog.

A module of routes parses requests and renders answers. Computations belong in `lookup/`, in the catalog's reports and
in `upkeep/`. docs/service.md shows how to add a route.
"""
