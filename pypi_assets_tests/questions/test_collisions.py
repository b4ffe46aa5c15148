"""Modules with files from several distributions are collisions. Parts of a namespace package are not."""

from pypi_assets.questions.collisions import collisions, leaves_of, shared_packages
from pypi_assets.questions.locks import LockedAnswer
from pypi_assets_tests.counted_steps import growth
from pypi_assets_tests.export.pinned import USUAL, answer, of_modules, release


def test_modules_of_the_same_distributions_are_one_collision() -> None:
    lock = of_modules({"opencv-python": ["cv2.cv2", "cv2.data"], "opencv-python-headless": ["cv2.cv2", "cv2.data"]})
    [found] = collisions(lock)
    assert found["modules"] == ["cv2.cv2", "cv2.data"]
    assert [distribution["project"] for distribution in found["distributions"]] == [
        "opencv-python-headless",
        "opencv-python",
    ]
    assert found["distributions"][0]["filenames"] == ["opencv_python_headless-1-py3-none-any.whl"]
    assert (found["pip"], found["uv"]) == ("opencv-python", None)
    assert shared_packages(lock) == [
        {"package": "cv2", "projects": ["opencv-python", "opencv-python-headless"]},
    ]


def test_namespace_packages_and_stubs_do_not_collide() -> None:
    assert collisions(USUAL) == []
    assert [package["package"] for package in shared_packages(USUAL)] == ["google"]


def test_module_and_package_of_one_name_are_distinguished() -> None:
    lock = of_modules({"core": ["n"], "other": ["n.y"]})
    assert collisions(lock) == []
    assert shared_packages(lock) == [{"package": "n", "projects": ["core", "other"]}]


def test_versions_of_one_project_do_not_collide() -> None:
    assert collisions(answer(release("a", ["x"]), release("a", ["x"]))) == []


def test_groups_are_by_distributions_in_module_order() -> None:
    lock = of_modules({"a": ["x", "y"], "b": ["x"], "c": ["y"], "d": ["x"]})
    assert [
        (collision["modules"], [distribution["project"] for distribution in collision["distributions"]])
        for collision in collisions(lock)
    ] == [
        (["x"], ["d", "b", "a"]),
        (["y"], ["c", "a"]),
    ]


def test_leaf_has_no_submodules() -> None:
    assert leaves_of({"a", "a.b", "a.b.c", "d"}) == {"a.b.c", "d"}


def test_work_grows_only_with_the_number_of_distributions() -> None:
    def collide(answer: LockedAnswer, count: int) -> None:
        assert len(collisions(answer)) == count

    locks = {count: of_modules({f"p{n}": [f"m{n // 2}"] for n in range(2 * count)}) for count in (50, 200)}
    assert growth(lambda count: collide(locks[count], count), 50) < 5
