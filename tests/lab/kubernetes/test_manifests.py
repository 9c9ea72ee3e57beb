"""What the program renders for MetalLB, judged by MetalLB's own schemas on a real API server."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from lab.errors import LabError
from lab.kubernetes.access import send
from tests.lab.kubernetes.support import cluster

pytestmark = pytest.mark.programs

GOLDEN = Path(__file__).parents[2] / "golden"
VARIANTS = ("bgp", "bgp-with-password", "l2", "l2-on-interfaces")
PATHS = {
    "Namespace": "/api/v1/namespaces",
    "Secret": "/api/v1/namespaces/metallb-system/secrets",
    "IPAddressPool": "/apis/metallb.io/v1beta1/namespaces/metallb-system/ipaddresspools",
    "BGPPeer": "/apis/metallb.io/v1beta2/namespaces/metallb-system/bgppeers",
    "BGPAdvertisement": "/apis/metallb.io/v1beta1/namespaces/metallb-system/bgpadvertisements",
    "L2Advertisement": "/apis/metallb.io/v1beta1/namespaces/metallb-system/l2advertisements",
}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Generator[httpx.Client]:
    with cluster(tmp_path_factory.mktemp("cluster")) as access, access.client() as made:
        yield made


def apply(client: httpx.Client, document: dict[str, Any]) -> dict[str, Any]:
    return send(
        client,
        "PATCH",
        f"{PATHS[document['kind']]}/{document['metadata']['name']}",
        params={"fieldManager": "test", "fieldValidation": "Strict", "force": "true"},
        content=json.dumps(document),
        headers={"Content-Type": "application/apply-patch+yaml"},
    )


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_manifest_is_taken_as_it_is(client: httpx.Client, variant: str) -> None:
    for document in yaml.safe_load_all((GOLDEN / f"metallb-{variant}.yaml").read_text()):
        applied = apply(client, document)
        # Nothing was dropped or rewritten: what was asked for is there, beside the schema's defaults.
        asked = document.get("spec", {})
        assert {key: applied["spec"][key] for key in asked} == asked


def test_a_misspelt_field_would_be_refused(client: httpx.Client) -> None:
    [*_, peer] = [
        document
        for document in yaml.safe_load_all((GOLDEN / "metallb-bgp.yaml").read_text())
        if document["kind"] == "BGPPeer"
    ]
    peer["spec"]["sourceAdress"] = peer["spec"].pop("sourceAddress")
    with pytest.raises(LabError, match="sourceAdress"):
        apply(client, peer)
