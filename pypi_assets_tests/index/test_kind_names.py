"""Names of index kinds are known without loading a kind."""

import pytest

from pypi_assets.index.kind_names import BUILT_IN, added_kinds, require_kind
from pypi_assets.settings import SettingsError, load_settings
from pypi_assets_tests.naming import naming


@pytest.mark.parametrize("name", BUILT_IN)
def test_builtin_kinds_are_known(name: str) -> None:
    require_kind(name)
    assert name not in added_kinds()


def test_unknown_kind_is_rejected_with_the_known_names() -> None:
    with pytest.raises(ValueError, match=naming("rss", "auto")):
        require_kind("rss")


@pytest.mark.parametrize("lister", ["xmlrpc", "simple"])
def test_index_with_changelog_ends_in_simple(lister: str) -> None:
    with pytest.raises(SettingsError, match=naming("PYPI_ASSETS_INDEX_URL")):
        load_settings(lister=lister, index_url="http://127.0.0.1/root/dev/+simple/")


def test_url_without_list_is_left_to_the_first_crawl() -> None:
    settings = load_settings(index_url="http://127.0.0.1/root/dev")
    assert (settings.index_url, settings.resolved_changelog_url) == (
        "http://127.0.0.1/root/dev/",
        "http://127.0.0.1/root/dev/pypi",
    )
