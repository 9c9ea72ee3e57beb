"""Whether the installer's assets are to be made anew: pure functions of what they were made of, and of the time.

Some certificates among the assets live for 24 hours: the signer of the kubelets' certificates, the aggregator's, and
the serving certificates of the API (openshift/installer, pkg/asset/tls: kubelet.go, aggregator.go, apiserver.go; tls.go
has the lengths). Only a cluster that was formed renews them by itself. Red Hat's documentation recommends that Ignition
configs are used within 12 hours, because the cluster renews certificates 16 to 22 hours after they were made. So half
of such a life must be left: 12 hours of 24, twice as much as all gates wait for by default, one after the other.
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
"""Where bootstrap.ign puts them."""


def reasons(*, was: Mapping[str, Any], now: Mapping[str, Any], assets: str, time: datetime) -> tuple[str, ...]:
    """Why assets are to be made anew, in words that follow «because»; empty: they are good.

    Args:
        was, now: the driver's request that they were made of, and the one of this run; secret.
        assets: the driver's document; secret.
        time: now, with its zone.
    """
    return (*_release(was, now), *_configuration(was, now), *_manifests(was, now), *_age(assets, time))


def _release(was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    if was.get("version") != now.get("version"):
        yield f"they are of release {was.get('version')}, and openshiftVersion is {now.get('version')}"
    if was.get("releaseImage") != now.get("releaseImage"):
        told = [str(request.get("releaseImage") or "the installer's own") for request in (was, now)]
        yield f"their release image is {told[0]}, and install.releaseImage is {told[1]}"


def _configuration(was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    before, after = (_compared(request.get("installConfig")) for request in (was, now))
    changed = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
    if changed:
        yield f"what they are made of has changed since: {', '.join(changed)} of install-config.yaml"


def _manifests(was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    if changed := changed_manifests(was, now):
        yield f"manifests have changed since: {', '.join(changed)}"


def changed_manifests(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The names of the user's manifests that differ between two requests."""
    before, after = (cast("Mapping[str, str]", request.get("manifests") or {}) for request in (was, now))
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


def _compared(text: Any) -> dict[str, Any]:
    """install-config.yaml, as far as another one makes other assets. Of the workers' number 0 is special, where the
    control plane takes the pods (pkg/asset/manifests/scheduler.go), and 1, which is not highly available (topologies.go
    there)."""
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
    told = f"their certificate {first.subject.rfc4514_string()} ends at {ends.isoformat(timespec='minutes')}"
    yield (
        f"{told}, and of its {_hours(whole)} only {_hours(left)} are left"
        if left > timedelta()
        else (f"{told}: it has expired")
    )


def certificates(assets: str) -> list[x509.Certificate]:
    """All certificates that the assets bring along, as far as they can be read."""
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
