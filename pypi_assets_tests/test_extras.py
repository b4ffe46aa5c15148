"""The command that installs an extra fits the tool that made the environment."""

from pypi_assets.extras import install_command


def test_the_command_is_that_of_the_tool() -> None:
    for prefix, begins in (
        ("/home/me/.local/share/uv/tools/pypi-assets", "uv tool install "),
        ("/home/me/.local/share/pipx/venvs/pypi-assets", "pipx install --force "),
        ("/home/me/uv/project/tools/.venv", "python -m pip install "),
    ):
        assert install_command("parquet", prefix) == f"{begins}'pypi-assets[parquet]'"
