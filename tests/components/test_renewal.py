"""When the installer's assets are made anew: by what they were made of, and by a clock that is given."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from metal_ipi.components.install.asking import Answer
from metal_ipi.components.install.previous_runs import PreviousRuns
from metal_ipi.components.install.renewal import certificates, reasons
from metal_ipi.components.install.stage import Stage, stage
from metal_ipi.stacks.sections.install import Timeouts
from tests.components.test_install_config import config

_MADE = datetime(2020, 1, 1, 8, 0, tzinfo=UTC)
_DAY = timedelta(days=1)


def _certificate(name: str, life: timedelta) -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    built = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(_MADE)
        .not_valid_after(_MADE + life)
        .sign(key, hashes.SHA256())
    )
    return built.public_bytes(serialization.Encoding.PEM).decode()


def _file(path: str, text: str) -> dict[str, Any]:
    # As openshift/installer writes them (pkg/asset/ignition/node.go).
    source = "data:text/plain;charset=utf-8;base64," + base64.b64encode(text.encode()).decode()
    return {"path": path, "contents": {"source": source}}


def _assets(**lives: timedelta) -> str:
    files = [_file(f"/opt/openshift/tls/{name}.crt", _certificate(name, life)) for name, life in lives.items()]
    others = [_file("/opt/openshift/tls/root-ca.key", "KEY"), _file("/etc/motd", _certificate("other", timedelta(1)))]
    bootstrap = {"ignition": {"version": "3.2.0"}, "storage": {"files": [*files, *others, {"path": "/etc/empty"}]}}
    return json.dumps({"bootstrap": json.dumps(bootstrap), "worker": "{}"})


OF_OPENSHIFT = _assets(**{"root-ca": 3650 * _DAY, "kube-control-plane-signer": 365 * _DAY, "kubelet-signer": _DAY})


def _request(**changes: Any) -> dict[str, Any]:
    top = {key: changes.pop(key) for key in ("version", "installer", "workDirectory", "releaseImage") if key in changes}
    fixed = {"version": "4.21.3", "installer": "openshift-install", "workDirectory": "/w", "inPlace": False}
    return {**fixed, "installConfig": config(**changes), **top}


def _reasons(hours: float = 1, assets: str = OF_OPENSHIFT, **changes: Any) -> tuple[str, ...]:
    return reasons(was=_request(), now=_request(**changes), assets=assets, time=_MADE + timedelta(hours=hours))


@pytest.mark.parametrize("hours", [0, 1, 6, 11.9, 12])
def test_good_assets_are_kept(hours: float) -> None:
    assert _reasons(hours) == ()


def test_assets_of_which_less_than_half_a_life_is_left_are_too_old() -> None:
    (reason,) = _reasons(12.1)
    assert reason == (
        "their certificate CN=kubelet-signer ends at 2020-01-02T08:00+00:00, and only 11.9 h of its 24.0 h are left"
    )


def test_expired_ones_are_told_so() -> None:
    (reason,) = _reasons(24.1)
    assert reason == "their certificate CN=kubelet-signer ends at 2020-01-02T08:00+00:00: it has expired"


def test_the_half_that_is_left_is_enough_for_all_gates() -> None:
    """One after the other, and both waits for SSH: the figure in renewal.py."""
    waits = Timeouts()
    whole = (
        waits.machines_active
        + 2 * waits.machines_reachable
        + waits.api_answers
        + waits.bootstrap_complete
        + waits.nodes_ready
        + waits.install_complete
    )
    assert timedelta(seconds=2 * whole) <= _DAY / 2


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"pull_secret": '{"auths":{"quay.io":{"auth":"right"}}}'}, "pullSecret of install-config.yaml"),
        ({"authorized_keys": ["ssh-ed25519 BBBB"]}, "sshKey of install-config.yaml"),
        ({"control_plane": 1}, "controlPlane of install-config.yaml"),
        ({"workers": 0}, "compute of install-config.yaml"),
        ({"machine_networks": ["192.0.2.0/24"]}, "networking of install-config.yaml"),
        ({"fips": True, "in_place": True}, "bootstrapInPlace, fips of install-config.yaml"),
        ({"version": "4.21.4"}, "they are of release 4.21.3, and openshiftVersion is 4.21.4"),
        ({"releaseImage": "quay.example/x@sha256:1"}, "release image is the installer's own, and install.releaseImage"),
    ],
)
def test_what_was_corrected_is_named_and_not_shown(changes: dict[str, Any], told: str) -> None:
    (reason,) = _reasons(**changes)
    assert told in reason and "right" not in reason


def test_all_reasons_are_told() -> None:
    assert len(_reasons(30, version="4.21.4", workers=0)) == 3


@pytest.mark.parametrize(
    "changes", [{"workers": 500}, {"installer": "/opt/openshift-install"}, {"workDirectory": "/elsewhere"}]
)
def test_what_makes_no_other_assets_is_no_reason(changes: dict[str, Any]) -> None:
    assert _reasons(**changes) == ()


@pytest.mark.parametrize("assets", ["", "{}", "[]", '{"bootstrap": "x"}', '{"bootstrap": "[]"}'])
def test_assets_that_cannot_be_read_have_no_age(assets: str) -> None:
    assert certificates(assets) == [] and _reasons(1000, assets=assets) == ()


def test_a_certificate_that_cannot_be_read_is_passed_over() -> None:
    bootstrap = {"storage": {"files": [_file("/opt/openshift/tls/x.crt", "no PEM")]}}
    remote = {"path": "/opt/openshift/tls/y.crt", "contents": {"source": "https://x.test"}}
    bootstrap["storage"]["files"].append(remote)
    assert certificates(json.dumps({"bootstrap": json.dumps(bootstrap)})) == []


def test_a_request_of_an_older_program_is_compared_as_far_as_it_goes() -> None:
    """It told 0 workers, whatever there were, and no network of the machines."""
    was = _request(workers=0)
    (reason,) = reasons(was=was, now=_request(), assets=OF_OPENSHIFT, time=_MADE)
    assert "compute of install-config.yaml" in reason
    (reason,) = reasons(was={}, now={**_request(), "installConfig": ""}, assets="", time=_MADE)
    assert reason == "they are of release None, and openshiftVersion is 4.21.3"


# --- stage -----------------------------------------------------------------------------------------------------------


def _stage(found: PreviousRuns, wanted: Mapping[str, Any], *, hours: float = 1, says: bool | None = None) -> Stage:
    asked: list[PreviousRuns] = []

    def ask(found: PreviousRuns) -> Answer:
        asked.append(found)
        return Answer(formed=says, text="who was asked")

    reached = stage(found, wanted, time=_MADE + timedelta(hours=hours), ask=ask)
    assert asked == ([] if says is None else [found])
    return reached


_HALF_WAY = PreviousRuns(bootstrapped=False, request=_request(), assets=OF_OPENSHIFT, has_control_plane=True)
_FORMED = PreviousRuns(bootstrapped=True, request=_request(), assets=OF_OPENSHIFT)


def test_a_first_run_asks_nobody_and_makes_nothing_anew() -> None:
    assert _stage(PreviousRuns(bootstrapped=False), _request(), hours=1000) == Stage(formed=False)


def test_after_bootstrap_complete_nothing_is_ever_made_anew() -> None:
    changed = _request(version="4.22.0", pull_secret='{"auths":{}}', workers=0)
    assert _stage(_FORMED, changed, hours=10_000) == Stage(formed=True)


def test_an_interrupted_installation_goes_on_with_good_assets() -> None:
    assert _stage(_HALF_WAY, _request(), says=False) == Stage(formed=False, resumed=True, source="who was asked")


def test_an_interrupted_installation_has_bad_assets_made_anew() -> None:
    reached = _stage(_HALF_WAY, _request(pull_secret='{"auths":{"quay.io":{"auth":"right"}}}'), hours=13, says=False)
    assert not reached.formed and len(reached.renewal) == 2


def test_a_cluster_that_was_formed_after_a_gate_gave_up_is_kept() -> None:
    assert _stage(_HALF_WAY, _request(version="4.22.0"), hours=1000, says=True) == Stage(formed=True)


def test_the_configuration_that_is_compared_is_the_one_that_is_written() -> None:
    assert yaml.safe_load(_request()["installConfig"])["compute"][0]["replicas"] == 2
