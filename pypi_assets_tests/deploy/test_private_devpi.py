"""A devpi-server as a private index together with a public one: a private name that is uploaded to the public index is
found, fails the check, and causes a notice.
"""

from pathlib import Path

import dagster as dg
import pytest

from pypi_assets.definitions import build_defs
from pypi_assets.defs.naming import Naming
from pypi_assets.setting_sources import selected_index
from pypi_assets.settings import load_settings
from pypi_assets_tests.builders import make_wheel
from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.deploy.test_index_servers import running_devpi, twine
from pypi_assets_tests.environment import clear_settings
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.notice_receiver import receiving
from pypi_assets_tests.served_index import served_index

pytestmark = pytest.mark.deploy
INDEXES = """
[company]
url = "{devpi}/me/dev/+simple/"
lister = "pages"
private = true
poll_shortest_s = 0
poll_confirm_s = 0

[public]
url = "{public}"
default = true
"""


def test_private_name_that_becomes_public_fails_the_check_and_is_notified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clear_settings(monkeypatch)
    built, commands = tmp_path / "built", Commands(tmp_path / "home")
    built.mkdir()
    with (
        running_devpi(tmp_path) as devpi,
        served_index(tmp_path / "public") as public,
        dg.DagsterInstance.ephemeral() as instance,
        receiving() as (url, received),
    ):
        devpi.request("PUT", "/me/dev", type="stage", bases=[], volatile=True)
        for name in ("acme-tools", "acme_web"):
            twine(f"{devpi.url}/me/dev/", "me", "secret", make_wheel(built, name, "1.0"))
        public.wheel("unrelated", "1.0")
        (tmp_path / "indexes.toml").write_text(INDEXES.format(devpi=devpi.url, public=public.url))
        monkeypatch.setenv("PYPI_ASSETS_HOME", str(commands.home))
        monkeypatch.setenv("PYPI_ASSETS_INDEXES", str(tmp_path / "indexes.toml"))
        monkeypatch.setenv("PYPI_ASSETS_NOTIFY_URLS", url)
        for index in ("company", "public"):
            commands.done("crawl", "full", "--index", index)
        assert commands.json("lookup", "confusion") == []

        with selected_index("company"):
            defs = build_defs(load_settings(), Naming("company"), is_private=True)

        def check() -> dg.AssetCheckEvaluation:
            ran = defs.resolve_job_def("company__confusion").execute_in_process(instance=instance)
            [evaluation] = ran.get_asset_check_evaluations()
            return evaluation

        assert check().passed
        public.wheel("Acme.Tools", "99.0")
        commands.done("crawl", "incremental")
        [found] = commands.json("lookup", "confusion")
        assert (found["kind"], found["names"], found["pip_indexes"], found["uv_index"]) == (
            "same",
            ["acme-tools"],
            ["public"],
            "company",
        )
        failed = check()
        assert (failed.passed, failed.severity) == (False, dg.AssetCheckSeverity.ERROR)
        assert unnamed(str(failed.description), "acme-tools", "public") == []
        sensor = defs.resolve_sensor_def("company__failed_check")
        with dg.build_sensor_context(instance=instance, resources=dict(defs.resources or {})) as context:
            sensor(context)
        [notice] = received
        assert "acme-tools" in notice["message"]

        devpi.request("DELETE", "/me/dev/acme-tools/1.0")
        for _ in range(3):  # a deletion counts once it is confirmed
            commands.done("crawl", "incremental", "--index", "company")
        assert commands.json("lookup", "confusion") == []
        assert check().passed
