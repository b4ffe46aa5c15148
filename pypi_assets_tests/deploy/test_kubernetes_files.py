"""The objects of `kubectl apply --kustomize deploy/kubernetes` conform to the schemas of Kubernetes."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from pypi_assets_tests.deploy.services import DEPLOY

KUBERNETES = DEPLOY / "kubernetes"
FOLDERS = (".", "service")
FIRST_WITH_COMPONENTS = 21
"""The first minor version of kubectl 1 whose `kubectl kustomize` supports components."""


def has_kubectl() -> bool:
    if not shutil.which("kubectl"):
        return False
    version = json.loads(subprocess.check_output(["kubectl", "version", "--client", "--output", "json"]))
    return int(version["clientVersion"]["minor"].rstrip("+")) >= FIRST_WITH_COMPONENTS


needs_kubectl = pytest.mark.skipif(not has_kubectl(), reason="kubectl 1.21 or newer is not installed: make kubectl")


def built(folder: Path) -> list[dict[str, Any]]:
    """Return the objects of a kustomization."""
    text = subprocess.check_output(["kubectl", "kustomize", folder], text=True)
    return list(yaml.safe_load_all(text))


def images(objects: list[dict[str, Any]]) -> list[str]:
    pods = [one["spec"]["template"]["spec"] for one in objects if one["kind"] == "Deployment"]
    return [container["image"] for pod in pods for container in pod["containers"]]


def test_files_belong_to_one_kustomization_each():
    listed = []
    for folder in FOLDERS:
        kustomization = yaml.safe_load((KUBERNETES / folder / "kustomization.yaml").read_text())
        listed += [(KUBERNETES / folder / name).resolve() for name in kustomization["resources"]]
        [component] = kustomization["components"]
        assert (KUBERNETES / folder / component).resolve() == KUBERNETES / "image"
    files = {path for path in KUBERNETES.rglob("*.yaml") if path.name != "kustomization.yaml"}
    assert sorted(listed) == sorted(files)


@pytest.mark.deploy
@needs_kubectl
def test_pods_have_the_image_of_the_chart():
    image = yaml.safe_load((DEPLOY / "values.yaml").read_text())["dagsterWebserver"]["image"]
    for folder, count in zip(FOLDERS, (2, 1), strict=True):
        assert images(built(KUBERNETES / folder)) == [f"{image['repository']}:{image['tag']}"] * count


@pytest.mark.deploy
@needs_kubectl
def test_one_file_sets_the_image_of_all_pods(tmp_path: Path):
    copy = tmp_path / "kubernetes"
    shutil.copytree(KUBERNETES, copy)
    path = copy / "image" / "kustomization.yaml"
    digest = f"sha256:{'0' * 64}"
    text = path.read_text().replace("newName: pypi-assets", "newName: registry.example.org/pypi-assets")
    path.write_text(text.replace("newTag: 0.1.0", f"digest: {digest}"))
    found = [image for folder in FOLDERS for image in images(built(copy / folder))]
    assert found == [f"registry.example.org/pypi-assets@{digest}"] * 3


@pytest.mark.deploy
@needs_kubectl
def test_objects_follow_the_schemas_of_kubernetes():
    validate = pytest.importorskip(
        "kubernetes_validate", reason="kubernetes-validate is not installed: make test-deploy"
    )
    kinds = []
    for folder in FOLDERS:
        for one in built(KUBERNETES / folder):
            validate.validate(one, validate.latest_version(), strict=True)
            kinds.append(one["kind"])
            one["spec" if "spec" in one else "metadata"]["misspelled"] = True
            with pytest.raises(validate.ValidationError):
                validate.validate(one, validate.latest_version(), strict=True)
    assert {"Deployment", "NetworkPolicy", "Service", "ServiceAccount"} == set(kinds)
