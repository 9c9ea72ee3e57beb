"""Asks a cluster whether its bootstrap is complete, where no run has seen it."""

from __future__ import annotations

import os
import ssl

import httpx
import yaml

from components.install.assets import AssetsError, Credentials, credentials, parse

_STATUS = "/api/v1/namespaces/kube-system/configmaps/bootstrap"
_TIMEOUT = 5.0


def is_bootstrapped(assets: str) -> bool:
    """Whether the cluster that these assets were made for says so (openshift/installer, create.go); `assets` is the
    driver's document, secret. A cluster that cannot be asked does not say so."""
    try:
        kubeconfig = parse(assets)["kubeconfig"]
        context = _tls(credentials(kubeconfig))
        server = str(yaml.safe_load(kubeconfig)["clusters"][0]["cluster"]["server"])
        # Straight to the cluster, as gates do: a proxy of the environment is for the outside world.
        with httpx.Client(verify=context, timeout=_TIMEOUT, trust_env=False) as client:
            answer = client.get(server.rstrip("/") + _STATUS)
        return answer.is_success and answer.json()["data"]["status"] == "complete"
    except (AssetsError, ssl.SSLError, httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError):
        return False


def _tls(known: Credentials) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=known.ca_pem)
    # Python reads certificates from files only; this one is in memory.
    descriptor = os.memfd_create("client-certificate")
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{known.client_cert_pem}\n{known.client_key_pem}\n")
        file.flush()
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    return context
