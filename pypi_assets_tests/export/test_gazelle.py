"""The manifest that Gazelle reads: by its grammar, and by the rule that it looks modules up by."""

from hypothesis import given
from hypothesis import strategies as st
from yaml import safe_load

from pypi_assets.export.formats import render_gazelle
from pypi_assets.export.module_owners import nearest
from pypi_assets_tests.export.pinned import USUAL, answer, of_modules, with_parents


def test_the_manifest_has_wheels_by_modules_in_order() -> None:
    assert render_gazelle(USUAL) == (
        "# Made by `pypi-assets export gazelle --lock uv.lock`.\n"
        "manifest:\n"
        "  modules_mapping:\n"
        "    _yaml: PyYAML\n"
        "    google.auth: google_auth\n"
        "    google.cloud: google_cloud_storage\n"
        "    google.oauth2: google_auth\n"
        "    google.protobuf: protobuf\n"
        '    "no": old\n'
        '    "null": old\n'
        "    types_pyyaml: types_pyyaml\n"
        "    yaml: PyYAML\n"
        "    zope: zope.interface\n"
        "  pip_repository:\n"
        "    name: pip\n"
    )


def test_a_manifest_of_nothing_is_one_too() -> None:
    assert safe_load(render_gazelle(answer())) == {
        "manifest": {"modules_mapping": {}, "pip_repository": {"name": "pip"}}
    }


names = st.sets(st.sampled_from(["a", "a.b", "a.b.c", "no", "no.yes", "é"]), max_size=4)


@given(st.dictionaries(st.sampled_from(["one", "two-x", "Three"]), names, max_size=3))
def test_each_module_of_one_wheel_leads_to_it(lock: dict[str, set[str]]) -> None:
    lock = {project: with_parents(modules) for project, modules in lock.items()}
    mapping = safe_load(render_gazelle(of_modules(lock)))["manifest"]["modules_mapping"]
    assert list(mapping) == sorted(mapping)
    for project, modules in lock.items():
        for module in modules.difference(*(others for other, others in lock.items() if other != project)):
            assert nearest(mapping, module) == project.replace("-", "_")
