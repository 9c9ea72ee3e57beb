"""What a run does with what earlier ones left: before bootstrap is complete, and after."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import grpc
import pulumi
import pytest
import trustme

from metal_ipi.components.boot.host_keys import host_key
from metal_ipi.components.install.asking import Answer, Login
from metal_ipi.components.install.manifests import ManifestsError
from metal_ipi.components.install.previous_runs import READ_STATE
from metal_ipi.components.install.stage import StageError
from metal_ipi.stacks import assets as assets_of_stack
from metal_ipi.stacks.problems import SettingsError
from metal_ipi.stacks.program import main
from tests.components.test_renewal import OF_OPENSHIFT
from tests.mocks import Recorder, is_secret, plain, run
from tests.stacks.answers import ANSWERS, ASSETS, CALLS, PUBLIC_KEY, SEED, declared, left_behind, settings, tells
from tests.stacks.rack import rack_declared, rack_text

_COMMAND = "metal-ipi:install:InstallAssets$command:local:Command"
_GATE = "metal-ipi:install:BootstrapGates$metal-ipi:index:Gate"
_KEYS = ("metal-ipi:index:ClusterKeys", {"publicKey": PUBLIC_KEY, "privateKey": "private", "hostKeySeed": SEED})
_INSTALLATION, _DEVICE = "metal-ipi:index:Installation", "equinix-metal:index/device:Device"
_EXPIRED = json.dumps({**json.loads(ASSETS), "bootstrap": json.loads(OF_OPENSHIFT)["bootstrap"]})
"""They were made in 2020."""
_FROM_MEMORY: dict[str, Any] = {
    "boot": {"streamFile": "stacks/rhcos-4.21.json", "architecture": "x86_64", "diskless": True},
}
_RIGHT = '{"auths":{"quay.io":{"auth":"right"}}}'


@cache
def _stdin(of_rack: bool = False) -> str:
    """What the driver was given by a first run."""
    recorder = rack_declared() if of_rack else declared()
    return recorder.inputs("install-assets-create")["stdin"]


_FORMED = Answer(formed=True, text="formed")
_BUSY = Answer(formed=False, text="the bootstrap machine at 192.0.2.5 has not formed the cluster")
_SILENT = Answer(formed=None, text="https://api.test does not answer (all circuits are busy)")


def _interrupted(assets: str = ASSETS, *, of_rack: bool = False, has_control_plane: bool = True) -> dict[str, Any]:
    name = "rack_control_plane_0_server" if of_rack else "da11_control_plane_0_device"
    resources: dict[str, tuple[str, dict[str, Any]]] = {
        name: (_DEVICE, {"hostname": "rack-control-plane-0" if of_rack else "da11-control-plane-0"}),
        "da11_bootstrap": (
            "metal-ipi:index:EphemeralMachine",
            {"hostname": "da11-bootstrap", "publicIpv4": "198.51.100.1"},
        ),
    }
    return left_behind(
        install_assets_create=(_COMMAND, {"stdin": _stdin(of_rack), "stdout": assets}),
        keys=_KEYS,
        **(resources if has_control_plane else {}),
    )


def _run(
    answers: Mapping[str, Any],
    config: Mapping[str, str],
    monkeypatch: pytest.MonkeyPatch,
    *,
    says: Answer = _BUSY,
    asked: list[Login | None] | None = None,
) -> tuple[Recorder, list[str]]:
    """`says`: what is answered to the question whether the cluster was formed; `asked`: each who was asked it."""
    told: list[str] = []

    def answer(assets: str, login: Login | None) -> Answer:
        if asked is not None:
            asked.append(login)
        return says

    monkeypatch.setattr(pulumi.log, "warn", told.append)
    monkeypatch.setattr(assets_of_stack, "ask", answer)
    return declared(answers=answers, values=dict(config)), told


def _is_kept(recorder: Recorder) -> bool:
    """Whether the command that made the assets goes on to have been given what it was given."""
    ignored = set(recorder.requests["install-assets-create"].ignoreChanges)
    assert ignored in (set(), {"create", "dir", "stdin", "environment", "interpreter", "logging",
                               "addPreviousOutputInEnv"})  # fmt: skip
    return bool(ignored)


def test_a_first_run(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder, told = _run(ANSWERS, settings(), monkeypatch)
    assert _is_kept(recorder) and told == []
    assert "environment" not in recorder.one("install-assets-create").inputs
    # 400 KiB in one variable is more than Linux lets a process have.
    assert recorder.one("install-assets-create").inputs["addPreviousOutputInEnv"] is False


def test_a_corrected_pull_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    config = settings(install={"pullSecret": _RIGHT})
    recorder, (told,) = _run(_interrupted(), config, monkeypatch)
    assert not _is_kept(recorder)
    args = recorder.one("install-assets-create")
    assert _RIGHT in json.loads(plain(args.inputs["stdin"]))["installConfig"] and is_secret(args.inputs["stdin"])
    why = "their sources have changed since: pullSecret of install-config.yaml"
    assert told.startswith(
        f"the installer's assets are made anew, because {why}. There is no cluster yet: {_BUSY.text}."
    )
    assert "right" not in told
    (shown,) = args.inputs["environment"].values()
    assert shown.endswith(f": {why}"), "the preview's diff shows it, too"


@pytest.mark.parametrize("assets", [ASSETS, _EXPIRED])
def test_after_bootstrap_complete_never(assets: str, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = left_behind(
        install_assets_create=(_COMMAND, {"stdin": _stdin(), "stdout": assets}),
        keys=_KEYS,
        bootstrap_complete=(_GATE, {"passedAt": "then"}),
    )
    config = settings(install={"pullSecret": _RIGHT}, workers={"count": 0}, openshiftVersion="4.22.0")
    recorder, told = _run(answers, config, monkeypatch)
    assert _is_kept(recorder) and told == []
    assert "userData" in recorder.requests["da11-control-plane-0-device"].ignoreChanges
    assert not recorder.one("da11-bootstrap").inputs.get("disposable")


def _stands(count: int, workers: int = 3) -> dict[str, Any]:
    """What a run left whose cluster has so many control plane machines, and was installed with so many workers."""
    machines = {
        f"da11_control_plane_{number}_device": (_DEVICE, {"hostname": f"da11-control-plane-{number}"})
        for number in range(count)
    }
    recorder = declared(controlPlane={"count": count}, workers={"count": workers})
    stdin = recorder.inputs("install-assets-create")["stdin"]
    return left_behind(
        install_assets_create=(_COMMAND, {"stdin": stdin, "stdout": ASSETS}),
        keys=_KEYS,
        bootstrap_complete=(_GATE, {"passedAt": "then"}),
        **machines,
    )


@pytest.mark.parametrize(("before", "after"), [(3, 4), (3, 5), (4, 5)])
def test_a_control_plane_that_stands_may_grow(before: int, after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    config = settings(controlPlane={"count": after}, **_FROM_MEMORY)
    recorder, told = _run(_stands(before), config, monkeypatch)
    assert _is_kept(recorder) and told == []
    assert recorder.inputs("nodes-ready")["spec"]["etcdMembers"] == after
    # What is added asks the others for its configuration, and is let in before it answers.
    assert "control-plane-checks-reachable" not in recorder.after("machine-config-access")
    first = declared(values=config)
    assert "control-plane-checks-reachable" in first.after("machine-config-access")
    urns = [sorted(map(each.urn, each.requests)) for each in (recorder, first)]
    assert urns[0] == urns[1]


@pytest.mark.parametrize(("masters", "workers"), [(1, 0), (3, 0), (3, 1)])
def test_routers_stay_where_names_point_when_workers_are_added(
    masters: int, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A control plane that was installed without workers goes on to take pods."""
    config = settings(controlPlane={"count": masters}, workers={"count": 2})
    recorder, _ = _run(_stands(masters, workers), config, monkeypatch)
    records = recorder.inputs("dns-ingress-records")["records"].values()
    (apps,) = (record["values"] for record in records if record["name"].startswith("*.apps."))
    assert len(apps) == 2 + (0 if workers else masters)


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        (1, 3, "installed with one control plane machine, and its topology stays SingleReplica"),
        (5, 4, "da11-control-plane-4 would be deleted, but on platform none nothing removes their members from etcd"),
        (3, 1, "da11-control-plane-1, da11-control-plane-2 would be deleted"),
    ],
)
def test_what_a_control_plane_that_stands_cannot_become(
    before: int, after: int, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = settings(controlPlane={"count": after})
    with pytest.raises(SettingsError) as refused:
        _run(_stands(before), config, monkeypatch)
    assert tells(refused.value.problems, "controlPlane.count", why)
    _run(_interrupted(), config, monkeypatch)  # as long as there is no cluster it may


def _manifests(folder: Path, text: str = "one") -> dict[str, str]:
    """A configuration with a manifest in a folder."""
    (folder / "motd.yaml").write_text(
        f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: motd, namespace: default}}\ndata: {{motd: {text}}}\n"
    )
    return settings(install={"manifests": [str(folder)]})


def test_manifests_are_what_the_installer_is_asked_for(tmp_path: Path) -> None:
    recorder = declared(values=_manifests(tmp_path))
    request = json.loads(plain(recorder.one("install-assets-create").inputs["stdin"]))
    assert request["manifests"] == {"motd.yaml": (tmp_path / "motd.yaml").read_text()}
    assert "manifests" not in json.loads(plain(_stdin())), "stacks without any are asked as before"


def test_a_wrong_manifest_is_refused_before_anything_is_registered(tmp_path: Path) -> None:
    config = _manifests(tmp_path, "{")
    recorder = Recorder(ANSWERS, CALLS)
    with pytest.raises(ManifestsError, match=r"motd\.yaml:5: expected"):
        run(main, recorder, config, stack="da11", preview=True)
    assert recorder.requests.keys() == {"metal-ipi-da11"}, "the stack itself"


def test_changed_manifests_before_and_after_there_is_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder, (told,) = _run(_interrupted(), _manifests(tmp_path), monkeypatch)
    assert not _is_kept(recorder)
    assert "are made anew, because manifests have changed since: motd.yaml. There is no cluster yet" in told
    formed = left_behind(
        install_assets_create=(_COMMAND, {"stdin": _stdin(), "stdout": ASSETS}),
        keys=_KEYS,
        bootstrap_complete=(_GATE, {"passedAt": "then"}),
    )
    recorder, (told,) = _run(formed, _manifests(tmp_path), monkeypatch)
    assert _is_kept(recorder)
    assert told.startswith("install.manifests: motd.yaml changed since the cluster was installed, which has")
    recorder, (told,) = _run(_interrupted(), _manifests(tmp_path), monkeypatch, says=_FORMED)
    assert _is_kept(recorder) and "Change the objects in the cluster" in told
    stdin = declared(values=_manifests(tmp_path)).inputs("install-assets-create")["stdin"]
    with_it = left_behind(
        install_assets_create=(_COMMAND, {"stdin": stdin, "stdout": ASSETS}),
        keys=_KEYS,
        bootstrap_complete=(_GATE, {"passedAt": "then"}),
    )
    for before in (formed, with_it):
        recorder, (told,) = _run(before, _manifests(tmp_path, "{"), monkeypatch)
        assert _is_kept(recorder) and told.startswith("the cluster exists, and does not need them any more: ")
    with pytest.raises(ManifestsError):
        _run(_interrupted(), _manifests(tmp_path, "{"), monkeypatch)


def test_a_cluster_that_says_it_is_formed_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    config = settings(install={"pullSecret": _RIGHT})
    recorder, told = _run(_interrupted(_EXPIRED), config, monkeypatch, says=_FORMED)
    assert _is_kept(recorder) and told == []
    assert "userData" in recorder.requests["da11-control-plane-0-device"].ignoreChanges


def test_where_nobody_answers_no_assets_are_made_anew_without_consent(monkeypatch: pytest.MonkeyPatch) -> None:
    config = settings(install={"pullSecret": _RIGHT})
    with pytest.raises(StageError) as refused:
        _run(_interrupted(), config, monkeypatch, says=_SILENT)
    text = str(refused.value)
    assert "pullSecret of install-config.yaml. That would" in text
    assert _SILENT.text in text and "Nothing was changed" in text and "right" not in text
    (fingerprint,) = re.findall(r"set metal-ipi:install\.discard to (\S+):", text)

    assert not fingerprint[0].isdigit()  # what YAML takes for a number comes to us as another text
    config = settings(install={"pullSecret": _RIGHT, "discard": fingerprint})
    recorder, (told,) = _run(_interrupted(), config, monkeypatch, says=_SILENT)
    assert not _is_kept(recorder) and "There is no cluster yet: install.discard says so" in told
    assert recorder.one("da11-bootstrap").inputs["disposable"] is True
    with pytest.raises(StageError):  # it was said of those assets, and of no others
        _run(_interrupted(_EXPIRED), config, monkeypatch, says=_SILENT)


def test_where_nobody_answers_machines_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder, (told,) = _run(_interrupted(), settings(**_FROM_MEMORY), monkeypatch, says=_SILENT)
    assert _is_kept(recorder) and _SILENT.text in told and re.search(r"install\.discard to assets-[0-9a-f]{8}:", told)
    for args in recorder.of(_DEVICE):
        assert "userData" in recorder.requests[args.name].ignoreChanges
    assert not recorder.one("da11-bootstrap").inputs.get("disposable")
    recorder, _ = _run(_interrupted(of_rack=True), rack_text(), monkeypatch, says=_SILENT)
    assert not any("disposable" in args.inputs for args in recorder.of(_INSTALLATION))


def test_without_a_control_plane_nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Login | None] = []
    config = settings(install={"pullSecret": _RIGHT})
    recorder, (told,) = _run(_interrupted(has_control_plane=False), config, monkeypatch, says=_SILENT, asked=asked)
    assert not _is_kept(recorder) and asked == []
    assert "There is no cluster yet: no control plane machine was made yet" in told


def test_the_bootstrap_machine_is_asked_by_its_own_host_key(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Login | None] = []
    _run(_interrupted(), settings(), monkeypatch, asked=asked)
    (login,) = asked
    assert login is not None and login.address == "198.51.100.1" and login.private_key == "private"
    assert login.host_key == host_key(SEED, "da11-bootstrap.da11.metal.example.com", "ed25519").public_key
    assert "private'" not in repr(login)


def test_a_state_that_cannot_be_read_counts_as_a_formed_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refused(grpc.RpcError):
        def code(self) -> grpc.StatusCode:
            return grpc.StatusCode.UNKNOWN

        def details(self) -> str:
            return "no backend client is available"

    def refuse(args: Any) -> dict[str, Any]:
        raise Refused

    recorder, (told,) = _run({**ANSWERS, READ_STATE: refuse}, settings(), monkeypatch)
    assert _is_kept(recorder) and "no backend client is available" in told
    assert "userData" in recorder.requests["da11-control-plane-0-device"].ignoreChanges


def test_a_rehearsal_has_no_secrets_to_compare(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", told.append)
    monkeypatch.setattr(assets_of_stack, "ask", lambda *arguments: pytest.fail("a rehearsal requests no prices"))
    recorder = declared(answers=_interrupted(_EXPIRED), preview=True, rehearsal=True)
    assert _is_kept(recorder) and told == []


def test_machines_that_run_from_memory_are_ordered_again(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder, _ = _run(_interrupted(), settings(**_FROM_MEMORY), monkeypatch)
    for args in recorder.of(_DEVICE):
        ignored = recorder.requests[args.name].ignoreChanges
        assert "userData" not in ignored and {"plan", "metro", "projectId"} <= set(ignored)
    assert recorder.one("da11-bootstrap").inputs["disposable"] is True


def test_spot_machines_too(monkeypatch: pytest.MonkeyPatch) -> None:
    platform = {**json.loads(settings()["platform"]), "spot": {"maxPrice": 1.0}}
    for answers, kept in ((_interrupted(), False), (left_behind(bootstrap_complete=(_GATE, {})), True)):
        recorder, _ = _run(answers, settings(platform=platform, **_FROM_MEMORY), monkeypatch)
        for args in recorder.of("equinix-metal:index/spotMarketRequest:SpotMarketRequest"):
            ignored = set(recorder.requests[args.name].ignoreChanges)
            assert ("instanceParameters" in ignored) == kept
            assert kept or {"instanceParameters.plan", "maxBidPrice"} <= ignored
            assert "instanceParameters.userdata" not in ignored


def test_machines_that_are_installed_are_installed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder, _ = _run(_interrupted(of_rack=True), rack_text(), monkeypatch)
    assert {args.inputs["disposable"] for args in recorder.of(_INSTALLATION)} == {True}
    assert recorder.one("rack-bootstrap").inputs["disposable"] is True
    formed, _ = _run(left_behind(bootstrap_complete=(_GATE, {})), rack_text(), monkeypatch)
    assert not any("disposable" in args.inputs for args in formed.of(_INSTALLATION))


def test_a_machine_that_is_ordered_and_installed_is_not_ordered_again(monkeypatch: pytest.MonkeyPatch) -> None:
    boot = {"streamFile": "stacks/rhcos-4.21.json", "install": {"device": {"smallest": True}}}
    recorder, _ = _run(_interrupted(), settings(boot=boot), monkeypatch)
    assert "userData" in recorder.requests["da11-control-plane-0-device"].ignoreChanges
    assert recorder.one("da11-control-plane-0-installation").inputs["disposable"] is True


def test_another_archive_is_another_script_of_the_bootstrap_machine() -> None:
    """A server that is lent, and a virtual machine, is known by the script it boots, which names a URL that stays.

    Without its authority the machine waits for its Ignition for ever: it is to boot again once that is named.
    """

    def script(digit: str, **changes: Any) -> str:
        def answer(args: pulumi.runtime.MockResourceArgs) -> dict[str, Any]:
            found: dict[str, Any] = ANSWERS["metal-ipi:index:Artifacts"](args)
            return {**found, "hashes": {name: "sha512-" + digit * 128 for name in found["hashes"]}}

        return rack_declared({**ANSWERS, "metal-ipi:index:Artifacts": answer}, **changes).inputs("rack-bootstrap")[
            "script"
        ]

    authority = trustme.CA().cert_pem.bytes().decode()
    scripts = {script("0"), script("1"), script("1", artifacts__caBundle=authority)}
    assert len(scripts) == 3 and all(re.search(r" metal-ipi\.ignition=[0-9a-f]{16}\n", each) for each in scripts)
    assert script("1") in scripts
