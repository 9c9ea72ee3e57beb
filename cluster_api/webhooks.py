"""The objects that make the API server call the webhook: `python -m metal_ipi.cluster_api.webhooks [NAMESPACE]` prints
them.

cert-manager, which `clusterctl init` installs, makes the certificate and configures the API server to trust it.
"""

from __future__ import annotations

import sys
from typing import Any

import yaml

from metal_ipi.cluster_api.admission import PATH
from metal_ipi.cluster_api.rbac import NAME
from metal_ipi.cluster_api.resources import METAL_IPI_CLUSTER, OPENSHIFT_CONTROL_PLANE, VERSION

PORT = 9443
SECRET = "metal-ipi-webhook-service-cert"  # noqa: S105 - the name of a Secret
"""The Secret with the certificate, which the providers' pods mount."""
LABELS = {"control-plane": NAME}
"""Of the providers' pods."""
_SERVICE, _CERTIFICATE, _ISSUER = "metal-ipi-webhook-service", "metal-ipi-serving-cert", "metal-ipi-selfsigned-issuer"


def objects(namespace: str) -> list[dict[str, Any]]:
    """Service, certificate with its issuer, and configuration."""
    names = [f"{_SERVICE}.{namespace}.svc", f"{_SERVICE}.{namespace}.svc.cluster.local"]
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": _SERVICE, "namespace": namespace},
            "spec": {"ports": [{"port": 443, "targetPort": PORT}], "selector": LABELS},
        },
        {
            "apiVersion": "cert-manager.io/v1",
            "kind": "Issuer",
            "metadata": {"name": _ISSUER, "namespace": namespace},
            "spec": {"selfSigned": {}},
        },
        {
            "apiVersion": "cert-manager.io/v1",
            "kind": "Certificate",
            "metadata": {"name": _CERTIFICATE, "namespace": namespace},
            "spec": {"dnsNames": names, "issuerRef": {"kind": "Issuer", "name": _ISSUER}, "secretName": SECRET},
        },
        configuration({"service": {"name": _SERVICE, "namespace": namespace, "path": PATH}}, namespace),
    ]


def configuration(client: dict[str, Any], namespace: str) -> dict[str, Any]:
    """The ValidatingWebhookConfiguration; `client` says where the webhook is (WebhookClientConfig of
    admissionregistration.k8s.io/v1).

    The API server asks only where a specification changes: finalizers and annotations are written without the webhook.
    """
    kinds = (METAL_IPI_CLUSTER, OPENSHIFT_CONTROL_PLANE)
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {
            "name": "metal-ipi-validating-webhook-configuration",
            "annotations": {"cert-manager.io/inject-ca-from": f"{namespace}/{_CERTIFICATE}"},
        },
        "webhooks": [
            {
                "name": "validation.metal-ipi.cluster.x-k8s.io",
                "admissionReviewVersions": ["v1"],
                "clientConfig": client,
                "failurePolicy": "Fail",
                "sideEffects": "None",
                "timeoutSeconds": 30,
                "matchConditions": [
                    {
                        "name": "specification-changes",
                        "expression": "request.operation == 'CREATE' || object.spec != oldObject.spec",
                    }
                ],
                "rules": [
                    {
                        "apiGroups": [kind.resource.group],
                        "apiVersions": [VERSION],
                        "operations": ["CREATE", "UPDATE"],
                        "resources": [kind.resource.plural],
                    }
                    for kind in kinds
                ],
            }
        ],
    }


if __name__ == "__main__":
    yaml.safe_dump_all(objects(sys.argv[1] if sys.argv[1:] else "metal-ipi-system"), sys.stdout, sort_keys=False)
