"""The HTTP service: read-only, stateless processes that answer from published versions, and from the catalog for
earlier serials.

A module of routes has a function `routes(service)`. It parses and displays; what is computed is in `lookup/`, in the
catalog's reports and in `upkeep/`. docs/service.md shows how a route is added.
"""
