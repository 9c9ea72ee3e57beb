"""Whether the installer's assets must be created again: pure functions of what they were made from, and of the time.

Some certificates in the assets are valid for 24 hours: the signer of the kubelets' certificates, the aggregator's, and
the API's serving certificates (openshift/installer, pkg/asset/tls: kubelet.go, aggregator.go, apiserver.go; tls.go has
the lengths). Only a formed cluster renews them. Red Hat's documentation recommends to use Ignition configs within 12
hours, because the cluster renews certificates 16 to 22 hours after they were made. So half of the validity must be
left: 12 hours of 24, which is twice the sum of all gates' default timeouts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, cast

import yaml
from cryptography import x509

from metal_ipi.components.boot.ignition import IgnitionError, data_of

_CERTIFICATES = "/opt/openshift/tls/"
"""The directory of certificates in bootstrap.ign."""


def reasons(*, was: Mapping[str, Any], now: Mapping[str, Any], assets: str, time: datetime) -> tuple[str, ...]:
    """The reasons why assets must be created again, each completing a sentence with «because». Empty: they can be used.

    Args:
        was, now: the driver's request that the assets were made from, and this run's request; secret.
        assets: the driver's document; secret.
        time: the current time, with time zone.
    """
    return (*_release(was, now), *_configuration(was, now), *_manifests(was, now), *_age(assets, time))


def _release(was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    if was.get("version") != now.get("version"):
        yield f"they are of release {was.get('version')}, and openshiftVersion is {now.get('version')}"
    if was.get("releaseImage") != now.get("releaseImage"):
        images = [str(request.get("releaseImage") or "the installer's own") for request in (was, now)]
        yield f"their release image is {images[0]}, and install.releaseImage is {images[1]}"


def _configuration(was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    before, after = (_compared(request.get("installConfig")) for request in (was, now))
    changed = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
    if changed:
        yield f"their sources have changed since: {', '.join(changed)} of install-config.yaml"


def _manifests(was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    if changed := changed_manifests(was, now):
        yield f"manifests have changed since: {', '.join(changed)}"


def changed_manifests(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The names of the user's manifests that differ between two requests."""
    before, after = (cast("Mapping[str, str]", request.get("manifests") or {}) for request in (was, now))
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


def _compared(text: Any) -> dict[str, Any]:
    """The parts of install-config.yaml that change the assets.

    Of the number of workers only 0, 1 and more matter: with 0 the control plane runs pods
    (pkg/asset/manifests/scheduler.go), and 1 is not highly available (topologies.go there).
    """
    tree: Any = yaml.safe_load(text) if isinstance(text, str) else None
    if not isinstance(tree, dict):
        return {}
    config = cast("dict[str, Any]", tree)
    pools = [{**pool, "replicas": min(pool.get("replicas") or 0, 2)} for pool in config.get("compute") or ()]
    return {**config, "compute": pools}


def _age(assets: str, time: datetime) -> Iterator[str]:
    first = min(certificates(assets), key=lambda found: found.not_valid_after_utc, default=None)
    if first is None:
        return
    begins, ends = first.not_valid_before_utc, first.not_valid_after_utc
    left, whole = ends - time, ends - begins
    if left >= whole / 2:
        return
    text = f"their certificate {first.subject.rfc4514_string()} ends at {ends.isoformat(timespec='minutes')}"
    yield (
        f"{text}, and only {_hours(left)} of its {_hours(whole)} are left"
        if left > timedelta()
        else (f"{text}: it has expired")
    )


def certificates(assets: str) -> list[x509.Certificate]:
    """All certificates in the assets that can be parsed."""
    try:
        bootstrap: Any = json.loads(json.loads(assets)["bootstrap"])
        files: list[dict[str, Any]] = bootstrap["storage"]["files"]
    except (ValueError, KeyError, TypeError):
        return []
    return [found for file in files for found in _of_file(file)]


def _of_file(file: Mapping[str, Any]) -> list[x509.Certificate]:
    path = str(file.get("path"))
    if not (path.startswith(_CERTIFICATES) and path.endswith(".crt")):
        return []
    try:
        return x509.load_pem_x509_certificates(data_of(str((file.get("contents") or {}).get("source"))).encode())
    except (IgnitionError, ValueError):
        return []


def _hours(time: timedelta) -> str:
    return f"{time.total_seconds() / 3600:.1f} h"
