"""The same service through the ironic-standalone-operator, if the hub has it: its `Ironic` resource, and what that
needs.

Field names come from the operator's api module v0.8.0 (github.com/metal3-io/ironic-standalone-operator/api, v1alpha1).
The operator runs Ironic in the network of the hub's nodes.
"""

from __future__ import annotations

from typing import Any

from metal_ipi.components.provisioning import configuration, database, objects
from metal_ipi.components.provisioning.contract import GivenDatabase, IronicArgs, MadeTls, NodePorts, Operator
from metal_ipi.components.provisioning.objects import Object

NAME = "ironic"
API_VERSION = "ironic.metal3.io/v1alpha1"
API_ACCOUNT = "ironic-api-credentials"
"""The Secret with the API's account: `username`, `password`, `htpasswd`."""
DATABASE_ACCOUNT = "ironic-database-credentials"
"""The Secret with the database's account: `username`, `password`."""
TLS = "ironic-tls"
DATABASE_CA = "ironic-database-ca"
BMC_CA = "ironic-bmc-ca"
"""The Secret with certificate authorities of BMCs."""
TRUSTED_CA = "ironic-trusted-ca"
"""The ConfigMap with certificate authorities of hosts that images are fetched from."""


def authorities(args: IronicArgs) -> list[Object]:
    """The objects with certificate authorities that the resource refers to."""
    if not args.ca:
        return []
    return [
        objects.manifest("ConfigMap", TRUSTED_CA, args.namespace, NAME, data={"ca.crt": args.ca}),
        objects.manifest("Secret", BMC_CA, args.namespace, NAME, stringData={"ca.crt": args.ca}, type="Opaque"),
    ]


def ironic(args: IronicArgs, operator: Operator) -> Object:
    """The Ironic resource; Pulumi waits until the operator reports it as ready."""
    metadata = {
        "name": NAME,
        "namespace": args.namespace,
        "labels": objects.labels(NAME),
        "annotations": {"pulumi.com/waitFor": "condition=Ready"},
    }
    return {"apiVersion": API_VERSION, "kind": "Ironic", "metadata": metadata, "spec": _spec(args, operator)}


def _spec(args: IronicArgs, operator: Operator) -> dict[str, Any]:
    given = args.database if isinstance(args.database, GivenDatabase) else None
    spec: dict[str, Any] = {
        "apiCredentialsName": API_ACCOUNT,
        "database": {
            "credentialsName": DATABASE_ACCOUNT,
            "host": given.host if given else database.address(args.namespace),
            "name": given.name if given else database.SCHEMA,
            "tlsCertificateName": DATABASE_CA,
        },
        "images": {"ironic": args.images.ironic},
        "networking": _networking(args, operator),
        "tls": {
            "certificateName": TLS,
            **({"bmcCAName": BMC_CA, "trustedCAName": TRUSTED_CA} if args.ca else {}),
            **({"disableVirtualMediaTLS": True} if args.plain_boot_files else {}),
            # Conductors call each other by the addresses of the hub's nodes, which only a given certificate may
            # contain.
            **({"insecureRPC": True} if args.conductors > 1 and isinstance(args.tls, MadeTls) else {}),
        },
        "extraConfig": [
            {"group": group, "name": name, "value": value}
            for group, options in _options(args).items()
            for name, value in options.items()
        ],
    }
    if args.conductors > 1:
        spec["highAvailability"] = True
    if operator.version:
        spec["version"] = operator.version
    if args.metrics is not None:
        spec["prometheusExporter"] = {
            "enabled": True,
            "sensorCollectionInterval": args.metrics.interval_seconds,
            **({} if args.metrics.monitor else {"disableServiceMonitor": True}),
        }
    ramdisk = {
        "disableDownloader": args.ramdisk.kernel is not None,
        "extraKernelParams": " ".join(args.ramdisk.kernel_arguments),
        "sshKey": args.ramdisk.ssh_key or "",
    }
    if chosen := {name: value for name, value in ramdisk.items() if value}:
        spec["deployRamdisk"] = chosen
    return spec


def _networking(args: IronicArgs, operator: Operator) -> dict[str, Any]:
    access, dhcp = args.access, args.dhcp
    assert isinstance(access, NodePorts), "the operator has no load balancers"
    found: dict[str, Any] = {
        "apiPort": access.api,
        "imageServerTLSPort": access.files,
        "externalIP": access.address,
        **({"interface": operator.interface} if operator.interface else {}),
        **({"ipAddress": operator.address} if operator.address else {}),
    }
    if dhcp is not None:
        (begin, end) = dhcp.ranges[0].split(",")[:2]
        found["dhcp"] = {
            "networkCIDR": operator.network,
            "rangeBegin": begin,
            "rangeEnd": end,
            **({"gatewayAddress": dhcp.gateway} if dhcp.gateway else {}),
            **({"dnsAddress": dhcp.nameservers[0]} if dhcp.nameservers else {}),
        }
    return found


def _options(args: IronicArgs) -> dict[str, dict[str, str]]:
    """Options for which the resource has no field, then the further options of the settings."""
    own = configuration.own_options(args)
    chosen = {
        "DEFAULT": ("enabled_hardware_types", "debug"),
        "conductor": ("automated_clean", "conductor_group", "deploy_kernel", "deploy_ramdisk"),
        "sensor_data": ("enable_for_undeployed_nodes",),
    }
    found = {
        group: {name: own[group][name] for name in names if name in own.get(group, {})}
        for group, names in chosen.items()
    }
    for group, options in args.extra.items():
        found.setdefault(group, {}).update(options)
    return found
