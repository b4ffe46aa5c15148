"""Plans of stacks that start nothing."""

from pathlib import Path
from typing import Any

from pypi_assets.stack.layout import Layout
from pypi_assets.stack.postgres import Server
from pypi_assets.stack.programs import Ports, StackPlan
from pypi_assets.workspace import CodeLocation


def plan(home: Path, **options: Any) -> StackPlan:
    """Returns a plan for the home, with one code location; without PostgreSQL unless `options` name a server."""
    return StackPlan(
        **{"layout": Layout(home), "ports": Ports(3001, 8001, 9001), "locations": [CodeLocation()], **options}
    )


def server(layout: Layout, user: str = "") -> Server:
    """Returns a PostgreSQL server that was not made."""
    return Server(layout.postgres, layout.postgres_sockets, Path("/opt/postgres/bin"), user)
