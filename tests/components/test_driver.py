"""The installer driver against a fake installer: what it is asked, what it leaves behind, what it passes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from metal_ipi.components.install.driver import DriverError, create, fulfil

_ROOT = Path(__file__).resolve().parents[2]
_CONFIG = "apiVersion: v1\nmetadata: {name: lab}\npullSecret: hunter2\n"
# Writes what the real one writes, and reports beside itself how it found the directory.
_INSTALLER = r"""#!/bin/sh
if [ "$1" = version ]; then
    echo "openshift-install ${FAKE_VERSION-v4.21.3}"
    echo "built from commit 0000000"
    exit "${FAKE_VERSION_CODE:-0}"
fi
echo "$1 $2 $3 $OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE" | sed 's/ $//' >>"$0.asked"
cd "$4" || exit 9
[ -e openshift ] || { pwd; stat -c %a .; ls -A; stat -c %a install-config.yaml; } >"$0.found"
cp install-config.yaml "$0.config"
if [ -n "${FAKE_CODE:-}" ]; then
    echo "level=error msg=no route" >&2
    exit "$FAKE_CODE"
fi
if [ "$2" = manifests ]; then
    mkdir manifests openshift
    printf 'kind: ConfigMap\nmetadata: {name: theirs, namespace: default}\n' >manifests/own.yaml
    exit 0
fi
if [ -e openshift ]; then cat openshift/* >"$0.added"; fi
mkdir auth
case $2 in ignition-configs) first=bootstrap.ign ;; *) first=bootstrap-in-place-for-live-iso.ign ;; esac
for file in ${FAKE_FILES-$first worker.ign metadata.json auth/kubeconfig auth/kubeadmin-password}; do
    echo "content of $file" >"$file"
done
"""
_KEYS = {
    "bootstrap": "bootstrap.ign",
    "worker": "worker.ign",
    "metadata": "metadata.json",
    "kubeconfig": "auth/kubeconfig",
    "kubeadminPassword": "auth/kubeadmin-password",
}


@pytest.fixture
def installer(tmp_path: Path) -> Path:
    path = tmp_path / "bin" / "openshift-install"
    path.parent.mkdir()
    path.write_text(_INSTALLER)
    path.chmod(0o755)
    return path


def _create(installer: Path | str, work: Path, version: str = "4.21.3") -> dict[str, str]:
    return create(installer=str(installer), version=version, install_config=_CONFIG, work_directory=work)


def _beside(installer: Path, kind: str) -> str:
    return installer.with_name(f"{installer.name}.{kind}").read_text()


def test_the_assets_are_what_the_installer_wrote(installer: Path, tmp_path: Path) -> None:
    work = tmp_path / "deep" / "work"
    assert _create(installer, work) == {key: f"content of {file}\n" for key, file in _KEYS.items()}
    assert _beside(installer, "asked") == "create ignition-configs --dir\n"
    assert _beside(installer, "config") == _CONFIG
    where, mode, only, _ = _beside(installer, "found").splitlines()
    assert (where, mode, only) == (str(work), "700", "install-config.yaml")
    assert not work.exists()


def test_manifests_are_put_beside_the_installers_own(installer: Path, tmp_path: Path) -> None:
    made = create(
        installer=str(installer),
        version="4.21.3",
        install_config=_CONFIG,
        work_directory=tmp_path / "work",
        manifests={"a.yaml": "kind: Namespace\n", "b.yaml": "kind: Pod\n"},
    )
    assert made["bootstrap"] == "content of bootstrap.ign\n"
    assert _beside(installer, "asked") == "create manifests --dir\ncreate ignition-configs --dir\n"
    assert _beside(installer, "added") == "kind: Namespace\nkind: Pod\n"


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("own.yaml", "kind: Pod\n", "own.yaml: the installer has a file of this name"),
        (
            "mine.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: theirs, namespace: default}\n",
            "mine.yaml: the installer makes ConfigMap default/theirs itself (own.yaml); remove it",
        ),
    ],
)
def test_nothing_of_the_installers_is_replaced(
    name: str, text: str, told: str, installer: Path, tmp_path: Path
) -> None:
    with pytest.raises(DriverError) as caught:
        create(
            installer=str(installer),
            version="4.21.3",
            install_config=_CONFIG,
            work_directory=tmp_path / "work",
            manifests={name: text},
        )
    assert told in str(caught.value) and not (tmp_path / "work").exists()


def test_the_installer_is_found_on_path(installer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{installer.parent}:{os.environ['PATH']}")
    assert _create("openshift-install", tmp_path / "work")["worker"] == "content of worker.ign\n"


def test_leftovers_of_a_killed_run_are_not_trusted(installer: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "auth").mkdir(parents=True, mode=0o755)
    (work / ".openshift_install_state.json").write_text("{}")
    (work / "bootstrap.ign").write_text("somebody else's")
    assert _create(installer, work)["bootstrap"] == "content of bootstrap.ign\n"
    assert _beside(installer, "found").splitlines()[1:3] == ["700", "install-config.yaml"]


def test_a_link_where_the_work_directory_should_be_is_not_followed(installer: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (tmp_path / "work").symlink_to(target)
    with pytest.raises(DriverError, match="the installer's assets cannot be made"):
        _create(installer, tmp_path / "work")
    assert list(target.iterdir()) == []


def test_another_release_is_refused_before_anything_is_made(installer: Path, tmp_path: Path) -> None:
    with pytest.raises(DriverError) as caught:
        _create(installer, tmp_path / "work", version="4.20.0")
    assert caught.value.code == 3
    assert str(caught.value) == (
        f"{installer} is for release v4.21.3, but openshiftVersion is 4.20.0; use the installer of that release"
    )
    assert not (tmp_path / "work").exists() and not installer.with_name("openshift-install.asked").exists()


@pytest.mark.parametrize("environment", [{"FAKE_VERSION_CODE": "1"}, {"FAKE_VERSION": ""}])
def test_an_installer_that_does_not_say_its_release_is_refused(
    environment: dict[str, str], installer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(DriverError, match="version' does not print its release") as caught:
        _create(installer, tmp_path / "work")
    assert caught.value.code == 4


def test_a_missing_installer_is_named(tmp_path: Path) -> None:
    with pytest.raises(DriverError) as caught:
        _create("no-such-installer", tmp_path / "work")
    assert caught.value.code == 4
    assert str(caught.value) == (
        "there is no installer 'no-such-installer'; put openshift-install 4.21.3 on PATH or set install.installer"
    )


def test_a_failure_is_passed_on_and_leaves_nothing(
    installer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_CODE", "5")
    with pytest.raises(DriverError) as caught:
        _create(installer, tmp_path / "work")
    assert caught.value.code == 5
    assert str(caught.value) == "openshift-install create ignition-configs failed:\nlevel=error msg=no route"
    assert not (tmp_path / "work").exists()


def test_half_of_the_assets_is_a_failure(installer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_FILES", "bootstrap.ign worker.ign metadata.json auth/kubeconfig")
    with pytest.raises(DriverError, match=r"the installer's assets cannot be made: .*kubeadmin-password") as caught:
        _create(installer, tmp_path / "work")
    assert caught.value.code == 4
    assert not (tmp_path / "work").exists()


def test_another_release_image_is_handed_over(installer: Path, tmp_path: Path) -> None:
    image = "mirror.test/release@sha256:1"
    fulfil(json.dumps(_request(installer, tmp_path / "work", releaseImage=image)))
    assert _beside(installer, "asked") == f"create ignition-configs --dir {image}\n"


def _run(request: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "metal_ipi.components.install.driver"]
    text = request if isinstance(request, str) else json.dumps(request)
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False, cwd=_ROOT)


def test_a_single_nodes_bootstrap_is_made_by_its_own_command(installer: Path, tmp_path: Path) -> None:
    result = _run(_request(installer, tmp_path / "work", inPlace=True))
    assert result.returncode == 0, result.stderr
    assert _beside(installer, "asked") == "create single-node-ignition-config --dir\n"
    assert json.loads(result.stdout)["bootstrap"] == "content of bootstrap-in-place-for-live-iso.ign\n"


def _request(installer: Path, work: Path, **changes: Any) -> dict[str, Any]:
    request = {"installer": str(installer), "version": "4.21.3", "installConfig": _CONFIG, "workDirectory": str(work)}
    return {**request, **changes}


def test_as_a_program_it_prints_one_document(installer: Path, tmp_path: Path) -> None:
    result = _run(_request(installer, tmp_path / "work"))
    assert (result.returncode, result.stderr) == (0, "")
    assert json.loads(result.stdout) == {key: f"content of {file}\n" for key, file in _KEYS.items()}
    assert _beside(installer, "found").splitlines()[-1] == "600", "readable by nobody else"


def test_as_a_program_it_ends_with_the_installers_code(
    installer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _run(_request(installer, tmp_path / "work", version="4.20.0")).returncode == 3
    monkeypatch.setenv("FAKE_CODE", "6")
    result = _run(_request(installer, tmp_path / "work"))
    assert (result.returncode, result.stdout) == (6, "")
    assert "level=error msg=no route" in result.stderr and "hunter2" not in result.stderr


@pytest.mark.parametrize("request_", ["", "{}", '{"installer": "x"}', "[]", "null"])
def test_a_bad_request_is_told_from_a_failed_install(request_: str) -> None:
    result = _run(request_)
    assert (result.returncode, result.stdout) == (64, "")
    assert result.stderr.startswith("the request is incomplete: ")
    assert "Traceback" not in result.stderr
