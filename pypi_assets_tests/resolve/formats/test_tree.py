from pypi_assets.resolve.formats.text import tree_nodes
from pypi_assets_tests.resolve.formats.answers import answer


def test_each_project_is_opened_once_below_what_requires_it():
    nodes = [(node.depth, node.name, node.requirement, node.note) for node in tree_nodes(answer())]
    assert nodes == [
        (0, "app 1.0", "app", ""),
        (1, "lib[x] 1.5", "lib[x]>=1", ""),
        (2, "app 1.0", "app", "see above"),
        (2, "extra-of-lib 2.0", "extra-of-lib; extra == 'x'", "unknown requirements"),
        (0, "tool 3", "tool==3", "yanked"),
    ]


def test_what_is_for_some_environments_alone_has_a_marker():
    names = [node.name for node in tree_nodes(answer("app", "tool==3; sys_platform == 'win32'", universal=True))]
    assert "tool 3 ; sys_platform == 'win32'" in names
    assert "app 1.0" in names
