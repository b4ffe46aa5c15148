"""Stack plans that start no program."""

from pathlib import Path
from typing import Any

from pypi_assets.stack.layout import Layout
from pypi_assets.stack.postgres import Server
from pypi_assets.stack.programs import Ports, StackPlan
from pypi_assets.workspace import CodeLocation


def plan(home: Path, **options: Any) -> StackPlan:
    """Return a plan for the home with one code location. It has no PostgreSQL server unless `options` set one."""
    return StackPlan(
        **{"layout": Layout(home), "ports": Ports(3001, 8001, 9001), "locations": [CodeLocation()], **options}
    )


def server(layout: Layout, user: str = "") -> Server:
    """Return a PostgreSQL server that was not created."""
    return Server(layout.postgres, layout.postgres_sockets, Path("/opt/postgres/bin"), user)
