"""The command `up`, which runs the whole pipeline on this machine."""

import os
import shlex
import sys
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pypi_assets.cli.follow import stop_by_signals
from pypi_assets.cli.options import JSON, command
from pypi_assets.terminal import Output, plain, print_message, print_rows

if TYPE_CHECKING:
    from pypi_assets.settings import Settings
    from pypi_assets.stack.layout import Layout
    from pypi_assets.stack.programs import Ports, StackPlan
    from pypi_assets.stack.running import Keeper

_PORT = click.IntRange(1, 65_535)
_ALL_LOGS = "all"
_LAST_LINES = 30


@command("up")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="The home of the stack, instead of PYPI_ASSETS_HOME.",
)
@click.option("--with", "parts", type=click.Choice(["celery"]), multiple=True, help="Run Dagster's runs on Celery.")
@click.option(
    "--database",
    type=click.Choice(["postgres", "sqlite"]),
    help="The database of the catalog and of Dagster; default: the home's existing database, or else postgres.",
)
@click.option("--only-database", is_flag=True, help="Run only PostgreSQL, to restore a backup into it.")
@click.option("--no-follower", is_flag=True, help="Run no follower: Dagster's sensors follow the index.")
@click.option("--ui-port", type=_PORT, default=3000, show_default=True, help="Port of Dagster's UI.")
@click.option("--port", type=_PORT, default=8642, show_default=True, help="Port of the pages and the HTTP service.")
@click.option("--metrics-port", type=_PORT, default=9464, show_default=True, help="Port of the metrics.")
@click.option(
    "--status", "mode", flag_value="status", help="Show the processes; exit with 1 unless all of them answer."
)
@click.option(
    "--logs",
    "log",
    is_flag=False,
    flag_value=_ALL_LOGS,
    metavar="[NAME]",
    help="Print the last log lines of all processes, or of NAME.",
)
@click.option("--stop", "mode", flag_value="stop", help="Stop the stack, and wait until it has ended.")
@click.option("--systemd", "mode", flag_value="systemd", help="Write a unit for systemd's user manager.")
@JSON
def up_command(
    folder: Path | None,
    parts: tuple[str, ...],
    database: str | None,
    only_database: bool,
    no_follower: bool,
    ui_port: int,
    port: int,
    metrics_port: int,
    mode: str | None,
    log: str | None,
    as_json: bool,
) -> None:
    """Run the whole pipeline on this machine, until stopped.

    It starts PostgreSQL, Dagster, the follower, the HTTP service with the pages, and the metrics, and makes a first
    crawl. Processes that end are restarted. Run `pypi-assets init` first. `--status`, `--logs` and `--stop` are for
    use in another terminal.
    """
    from pypi_assets.setting_sources import ENV_PREFIX
    from pypi_assets.settings import load_settings
    from pypi_assets.stack.layout import Layout
    from pypi_assets.stack.programs import Ports

    if as_json and mode != "status":
        raise click.UsageError("--json works only with --status")
    if mode and log:
        raise click.UsageError(f"--{mode} and --logs exclude each other")
    if folder is not None:
        os.environ[f"{ENV_PREFIX}HOME"] = str(folder.expanduser().absolute())
    settings = load_settings()
    layout = Layout(settings.resolved_home)
    if log:
        _print_logs(layout, log)
    elif mode == "status":
        _show_status(layout, as_json)
    elif mode == "stop":
        _stop(layout)
    elif mode == "systemd":
        _write_unit()
    else:
        _require_contacts()
        ports = Ports(ui_port, port, metrics_port)
        options = {"follows": not no_follower, "parts": frozenset(parts), "only_database": only_database}
        _run(layout, None if only_database else ports, partial(_plan, settings, layout, database, ports, options))


def _require_contacts() -> None:
    """Raise SettingsError if an index has wrong settings, with which its follower would fail again and again."""
    from pypi_assets.setting_sources import read_all_indexes, selected_index
    from pypi_assets.settings import load_settings

    indexes = read_all_indexes()
    for name in indexes.names if indexes else [None]:
        with selected_index(name):
            load_settings().require_contact()


def _run(layout: "Layout", ports: "Ports | None", make_plan: Callable[[], "StackPlan"]) -> None:
    """Run the stack of `make_plan`, which also creates the database's cluster. The `ports` must be free."""
    from pypi_assets.stack.layout import StackError
    from pypi_assets.stack.running import Keeper, is_running, only_one, require_free_ports, write_files

    with stop_by_signals() as stopping:
        layout.make_folders()
        with only_one(layout) as is_alone:
            if not is_alone:
                raise click.ClickException(
                    f"another `up` runs or stops the stack of {plain(layout.home)}: `pypi-assets up --status` shows it"
                )
            keeper = Keeper(layout, print_message, stopping)
            try:
                runs_already = is_running(keeper.supervisor)
                if ports is not None and not runs_already:
                    require_free_ports(layout, ports)
                plan = make_plan()
                if runs_already:
                    print_message("the stack runs already, without `up`: it stays unchanged, and is supervised again")
                else:
                    write_files(plan, os.environ, Path.cwd())
            except StackError:
                if not stopping.is_set():  # Ctrl-C in a terminal also ends the program that creates the cluster
                    raise
            try:
                if not stopping.is_set():
                    _keep(keeper)
            finally:
                print_message("stopping")
                keeper.stop()
    print_message("stopped; nothing is lost, and `pypi-assets up` continues")


def _variables() -> dict[str, str]:
    """Return settings of all programs: sensors are on unless a setting says otherwise, and the index is selected."""
    from pypi_assets.setting_sources import ENV_PREFIX, read_variables

    found, variables = read_variables(), {}
    if "sensors_on" not in found.texts:
        variables[f"{ENV_PREFIX}SENSORS_ON"] = "true"
    if found.index is not None:
        variables[f"{ENV_PREFIX}INDEX"] = found.index.name
    return variables


def _plan(
    settings: "Settings", layout: "Layout", database: str | None, ports: "Ports", options: dict[str, Any]
) -> "StackPlan":
    """Return the plan of the stack. `options` are the arguments of `StackPlan` from the command line."""
    from pypi_assets.setting_sources import ENV_PREFIX, read_all_indexes
    from pypi_assets.stack.postgres import prepared_server
    from pypi_assets.stack.programs import COLORED, JSON, StackPlan
    from pypi_assets.workspace import CodeLocation, code_location

    indexes = read_all_indexes()
    locations = [code_location(table) for table in indexes.tables] if indexes else [CodeLocation()]
    server = prepared_server(layout) if choose_postgres(settings, layout, database) else None
    if server is None and options["only_database"]:
        raise click.UsageError("--only-database needs the PostgreSQL of `up`, and this home has another database")
    log_format = JSON if settings.log_format == "json" else COLORED
    variables = _variables()
    others = [name for name in indexes.names if name != variables[f"{ENV_PREFIX}INDEX"]] if indexes else []
    return StackPlan(
        *(layout, ports, locations, server),
        **options,
        variables=variables,
        other_indexes=others,
        log_format=log_format,
    )


def choose_postgres(settings: "Settings", layout: "Layout", database: str | None) -> bool:
    """Return whether the stack runs a PostgreSQL. Raises UsageError if the home already uses another database."""
    if settings.database_url:
        if database:
            raise click.UsageError("--database excludes PYPI_ASSETS_DATABASE_URL, which already names the database")
        return False
    in_use = "postgres" if layout.postgres.exists() else "sqlite" if settings.sqlite_path.exists() else None
    if database and in_use and database != in_use:
        raise click.UsageError(
            f"the catalog of {plain(layout.home)} is already in {in_use}: choose another --folder, or omit --database"
        )
    if in_use == "sqlite" and database is None:
        print_message(f"the catalog stays in {plain(settings.sqlite_path)}, and the stack runs no PostgreSQL")
    return (database or in_use or "postgres") == "postgres"


def _keep(keeper: "Keeper") -> None:
    from pypi_assets.stack.supervision import read_addresses

    keeper.begin()
    print_message(f"starting; logs are in {plain(keeper.layout.logs)}")
    if not keeper.await_ready():
        return
    addresses = read_addresses(keeper.layout)
    if "webserver" not in addresses:
        click.echo(addresses["postgres"])
        keeper.watch(addresses["postgres"], lambda: print_message("PostgreSQL runs alone; Ctrl-C stops it"))
        return
    ui, service = (addresses[name].rpartition("/")[0] for name in ("webserver", "service"))
    click.echo(
        f"Dagster's UI:  {ui}/\n"
        f"The pages:     {service}/   (the API: {service}/docs)\n"
        f"Metrics:       {addresses['metrics']}"
    )
    print_message("Ctrl-C stops all; `pypi-assets up --status` and `pypi-assets status` show the progress")
    keeper.watch(f"{service}/readyz", lambda: print_message("the first answers are available"))


def _show_status(layout: "Layout", as_json: bool) -> None:
    from pypi_assets.stack.layout import is_ready
    from pypi_assets.stack.supervision import Supervisor, read_addresses

    supervisor = Supervisor(layout)
    states = supervisor.states()
    if states is None and supervisor.is_there():
        raise click.ClickException(f"the stack of {plain(layout.home)} is stopping")
    if states is None:
        raise click.ClickException(f"no stack runs in {plain(layout.home)}: `pypi-assets up` starts it")
    addresses = read_addresses(layout)
    rows = []
    for state in states:
        address = addresses.get(state.name)
        row = {"name": state.name, "state": state.state.lower(), "pid": state.pid or None, "seconds": state.seconds}
        rows.append(row | {"answers": is_ready(address) if address else None, "address": address})
    print_rows(list(rows[0]), rows, Output(as_json, False, True))
    if not all(state.is_well and row["answers"] is not False for state, row in zip(states, rows, strict=True)):
        raise click.exceptions.Exit(1)


def _print_logs(layout: "Layout", name: str) -> None:
    from pypi_assets.stack.supervision import log_of, program_names

    names = ["supervisord", *program_names(layout.supervisor_file)]
    if name not in (_ALL_LOGS, *names):
        raise click.UsageError(f"unknown process {plain(name)}: choose from {', '.join(names)}")
    for one in names if name == _ALL_LOGS else [name]:
        path = log_of(layout, one)
        if not path.exists():
            continue
        if name == _ALL_LOGS:
            click.echo(f"--- {path}")
        with path.open(encoding="utf-8", errors="replace") as lines:
            for line in deque(lines, maxlen=_LAST_LINES):
                click.echo(plain(line))


def _stop(layout: "Layout") -> None:
    from pypi_assets.stack.running import stop_stack

    print_message("stopped" if stop_stack(layout) else f"no stack runs in {plain(layout.home)}")


def _write_unit() -> None:
    from pypi_assets.stack.layout import UNIT, unit_text, units_folder

    arguments = [argument for argument in sys.argv[1:] if argument != "--systemd"]
    command = [str(Path(sys.executable).with_name("pypi-assets")), *arguments]
    path = units_folder(dict(os.environ)) / UNIT
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(unit_text(command, Path.cwd()), encoding="utf-8")
    click.echo(
        f"{path} runs `{shlex.join(command)}` in {Path.cwd()}. Next:\n\n"
        f"  systemctl --user daemon-reload\n"
        f"  systemctl --user enable --now {UNIT}\n"
        f"  loginctl enable-linger          # so that it runs without a login"
    )
    from pypi_assets.setting_sources import ENV_PREFIX

    variables = sorted(name for name in os.environ if name.startswith((ENV_PREFIX, "AWS_")))
    if variables:
        print_message(
            f"the unit does not have these variables of this shell: {', '.join(variables)}; put {ENV_PREFIX}..."
            " variables into .env, and set others by `systemctl --user edit`"
        )
