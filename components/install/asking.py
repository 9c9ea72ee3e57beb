"""Asks a cluster whether its bootstrap is complete, if no earlier run has seen that."""

from __future__ import annotations

import asyncio
import os
import ssl
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import yaml

from metal_ipi.components.install.assets import AssetsError, Credentials, credentials, parse

_STATUS = "/api/v1/namespaces/kube-system/configmaps/bootstrap"
_TIMEOUT = 5.0
_PORT = 22
_LOGIN_TIMEOUT = 20.0
"""Seconds. An emulated machine needs several for a key exchange."""
_LOOK = "test -e /opt/openshift/cb-bootstrap.done && echo done || echo busy"
"""bootkube.sh writes that file once the pods run that make the control plane machines a cluster of their own. Then it
waits for etcd's operator and for DNS before it writes `.bootkube.done`, and only after that the cluster is told that
bootstrap is complete (openshift/installer, data/data/bootstrap/files/usr/local/bin: bootkube.sh.template,
report-progress.sh)."""


@dataclass(frozen=True, kw_only=True)
class Login:
    """SSH access to the machine that bootstraps the cluster."""

    address: str
    host_key: str
    """The only accepted host key, in the format of a .pub file."""
    private_key: str = field(repr=False)
    """The private key of user `core`."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Whether the cluster was formed."""

    formed: bool | None
    """None: nothing could be learnt."""
    text: str
    """Where the answer comes from, or why there is none."""


def ask(assets: str, login: Login | None) -> Answer:
    """Whether the cluster of these assets was formed.

    Asks its API first (openshift/installer, create.go), then the machine that bootstraps it, which knows it earlier.
    `assets` is the driver's document; secret.
    """
    answer = _of_api(assets)
    if answer.formed or login is None:
        return answer
    # Pulumi's language host runs the program inside an event loop, so asyncio.run needs a thread of its own.
    with ThreadPoolExecutor(1) as elsewhere:
        other = elsewhere.submit(asyncio.run, _of_machine(login)).result()
    return other if other.formed is not None else Answer(formed=None, text=f"{answer.text}; {other.text}")


def _of_api(assets: str) -> Answer:
    """Ask the API. Only the answer «complete» counts: any other answer proves nothing."""
    try:
        kubeconfig = parse(assets)["kubeconfig"]
        context = _tls(credentials(kubeconfig))
        url = str(yaml.safe_load(kubeconfig)["clusters"][0]["cluster"]["server"]).rstrip("/")
    except (AssetsError, ssl.SSLError, ValueError, KeyError, TypeError):
        return Answer(formed=None, text="the assets contain no kubeconfig for the cluster's API")
    import httpx  # slow to import, and previews ask nobody

    try:
        # Connect directly, as gates do: a proxy of the environment is for hosts outside.
        with httpx.Client(verify=context, timeout=_TIMEOUT, trust_env=False) as client:
            answer = client.get(url + _STATUS)
        if not answer.is_success and answer.status_code != 404:
            return Answer(formed=None, text=f"{url} answers with HTTP {answer.status_code}")
        if answer.is_success and answer.json()["data"]["status"] == "complete":
            return Answer(formed=True, text=f"{url} says that bootstrap is complete")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return Answer(formed=None, text=f"{url} does not answer ({str(error) or type(error).__name__})")
    except (ValueError, KeyError, TypeError):
        return Answer(formed=None, text=f"{url} gives an answer that is not a ConfigMap")
    return Answer(formed=None, text=f"{url} does not say that bootstrap is complete")


async def _of_machine(login: Login) -> Answer:
    import asyncssh

    try:
        async with asyncssh.connect(
            login.address,
            _PORT,
            username="core",
            client_keys=[asyncssh.import_private_key(login.private_key)],
            known_hosts=([asyncssh.import_public_key(login.host_key)], [], []),
            agent_path=None,
            config=None,
            connect_timeout=_TIMEOUT,
            login_timeout=_LOGIN_TIMEOUT,
        ) as connection:
            said = str((await connection.run(_LOOK, timeout=_LOGIN_TIMEOUT)).stdout).strip()
    except (OSError, asyncssh.Error, asyncssh.KeyImportError) as error:
        why = str(error) or type(error).__name__
        return Answer(formed=None, text=f"the bootstrap machine at {login.address} does not answer over SSH ({why})")
    if said not in {"done", "busy"}:
        return Answer(formed=None, text=f"the bootstrap machine at {login.address} does not report its progress")
    has = "has" if said == "done" else "has not"
    return Answer(formed=said == "done", text=f"the bootstrap machine at {login.address} {has} formed the cluster")


def _tls(known: Credentials) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=known.ca_pem)
    # ssl reads certificates from files only, so this file exists in memory only.
    descriptor = os.memfd_create("client-certificate")
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{known.client_cert_pem}\n{known.client_key_pem}\n")
        file.flush()
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    return context
