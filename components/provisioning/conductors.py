"""Ironic itself: each pod is one process with the API and a conductor, and a web server for its boot files.

Conductors have permanent names. So a conductor that is started again continues with its nodes; if it stays away, the
other conductors take over its nodes. They call each other by name, over TLS and with an account.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from metal_ipi.components.provisioning import configuration, files, metrics, objects
from metal_ipi.components.provisioning.configuration import API, CONDUCTORS
from metal_ipi.components.provisioning.contract import (
    API_PORT,
    FILES_PORT,
    RPC_PORT,
    GivenDatabase,
    IronicArgs,
    LoadBalancer,
)
from metal_ipi.components.provisioning.objects import Object

NAME = "ironic"
SECRETS = "ironic-secrets"
"""The Secret with `secrets.conf`."""
ACCOUNTS = "ironic-accounts"
"""The Secret with the accounts of `api` and `rpc`: lines with bcrypt hashes. Ironic reads it at each request."""
TLS = "ironic-tls"
DATABASE_CA = "ironic-database-ca"

_LEAVES_SECONDS = 5
"""Seconds for which a conductor works on after its pod was told to end: in them kube-proxy learns that the Service has
one pod less. They count as part of the pod's grace period."""
_STOP_SECONDS = 120
_ALIVE = Path(__file__).with_name("alive.py")
_ALIVE_PATH = f"/etc/ironic/{_ALIVE.name}"
AT_START = Path(__file__).with_name("sitecustomize.py")
_AT_START_DIRECTORY = "/etc/ironic/python"
_RAMDISK_LOGS = Path(__file__).with_name("ramdisk_logs.py")
_RAMDISK_LOGS_PATH = f"/etc/ironic/{_RAMDISK_LOGS.name}"
_REACH = Path(__file__).with_name("reach_database.py")
_REACH_PATH = f"/etc/ironic/{_REACH.name}"
_REACHES_DATABASE = ("/etc/ironic/secrets/secrets.conf", "/etc/ironic/database/ca.crt")
_AUTHORITIES = "authorities.pem"
_AUTHORITIES_PATH = f"/etc/ironic/{_AUTHORITIES}"
"""The certificate authorities of BMCs, and of hosts from which discs and images are fetched."""


def config_map(args: IronicArgs) -> Object:
    """The ConfigMap: all configuration that is not secret."""
    data = {
        "ironic.conf": configuration.ironic_conf(args),
        **{f"{NAME}-{number}.conf": configuration.conductor_conf(args, number) for number in range(args.conductors)},
        "nginx.conf": files.nginx_conf("/shared/html", FILES_PORT, tls=not args.plain_boot_files),
        _ALIVE.name: _ALIVE.read_text(),
        AT_START.name: AT_START.read_text(),
        **({_REACH.name: _REACH.read_text()} if isinstance(args.database, GivenDatabase) else {}),
        **({_RAMDISK_LOGS.name: _RAMDISK_LOGS.read_text()} if args.ramdisk.kernel else {}),
        **({_AUTHORITIES: args.ca} if args.ca else {}),
    }
    return objects.manifest("ConfigMap", NAME, args.namespace, NAME, data=data)


def made_of(args: IronicArgs) -> str:
    """A digest of everything that a conductor reads only at start, except secrets."""
    more = [_ALIVE.read_text(), AT_START.read_text(), *([args.ca] if args.ca else [])]
    if args.ramdisk.kernel:
        more.append(_RAMDISK_LOGS.read_text())
    return objects.digest(configuration.ironic_conf(args), str(args.plain_boot_files), str(args.rotation), *more)


def services(args: IronicArgs) -> list[Object]:
    """The Services: one for the API, one that gives conductors names, and one for each conductor's boot files."""
    chosen, access = objects.selector(NAME), args.access
    balanced = isinstance(access, LoadBalancer)
    api = objects.published(chosen, "api", API_PORT, access.address if balanced else access.api)
    names = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": chosen,
        "ports": [{"name": "rpc", "port": RPC_PORT, "targetPort": "rpc"}],
    }
    found = [
        objects.manifest("Service", API, args.namespace, NAME, spec=api),
        objects.manifest("Service", CONDUCTORS, args.namespace, NAME, spec=names),
    ]
    for number in range(args.conductors):
        one = {**chosen, "statefulset.kubernetes.io/pod-name": f"{NAME}-{number}"}
        where = access.files[number] if isinstance(access, LoadBalancer) else access.files + number
        # Reachable also while its pod is terminating.
        spec = {**objects.published(one, "files", FILES_PORT, where), "publishNotReadyAddresses": True}
        found.append(objects.manifest("Service", f"{NAME}-{number}-files", args.namespace, NAME, spec=spec))
    if args.metrics is not None:
        found.append(metrics.service(args, NAME))
    if isinstance(access, LoadBalancer) and access.annotations:
        for each in found:
            if each["spec"].get("type") == "LoadBalancer":
                each["metadata"]["annotations"] = dict(access.annotations)
    return found


def stateful_set(args: IronicArgs, *, changes: object) -> Object:
    """The conductors. `changes` changes with everything that they read only at start: then they restart one by one."""
    shared = objects.mount("shared", "/shared")
    trusted = [objects.file("config", _AUTHORITIES_PATH)] if args.ca else []
    prepare = objects.container(
        "prepare",
        args.images.ironic,
        ["/bin/sh", "-c", _PREPARE],
        [shared, objects.mount("state", "/var/lib/ironic")],
    )
    ironic = objects.container(
        NAME,
        args.images.ironic,
        ["ironic", *_READ, "--config-file", "/etc/ironic/conductor.conf"],
        [
            *_reads(),
            _OWN,
            objects.file("config", _ALIVE_PATH),
            objects.file("config", f"{_AT_START_DIRECTORY}/{AT_START.name}"),
            *trusted,
            shared,
            objects.mount("state", "/var/lib/ironic"),
            objects.mount("tmp", "/tmp"),  # noqa: S108 - a path in a container
        ],
        env=[
            {"name": "PYTHONPATH", "value": _AT_START_DIRECTORY},
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            # If no option of Ironic names a CA file, the library requests (used for BMCs and web servers) uses this
            # one.
            *([{"name": "REQUESTS_CA_BUNDLE", "value": _AUTHORITIES_PATH}] if args.ca else []),
        ],
        ports=[{"name": "api", "containerPort": API_PORT}, {"name": "rpc", "containerPort": RPC_PORT}],
        startupProbe={**objects.https_probe(API_PORT, "/"), "periodSeconds": 2, "failureThreshold": 150},
        readinessProbe=objects.https_probe(API_PORT, "/"),
        livenessProbe={
            "exec": {"command": ["python3", _ALIVE_PATH, str(API_PORT), *_REACHES_DATABASE]},
            "periodSeconds": 20,
            "timeoutSeconds": 40,  # longer than all its own timeouts: a busy conductor must not be restarted
            "failureThreshold": 3,
        },
        # Its API ends at once when it is told to: by then nobody may be sent to it any more.
        lifecycle={"preStop": {"exec": {"command": ["sleep", str(_LEAVES_SECONDS)]}}},
        resources={"requests": {"memory": "384Mi", "cpu": "100m"}},
    )
    tls = [] if args.plain_boot_files else [objects.mount("tls", "/etc/files/tls", read_only=True)]
    server = objects.container(
        "files",
        args.images.files,
        ["nginx", "-c", "/etc/files/nginx.conf", "-g", "daemon off;"],
        [
            {**shared, "readOnly": True},
            objects.file("config", "/etc/files/nginx.conf"),
            objects.mount("files-tmp", "/tmp"),  # noqa: S108 - a path in a container
            *tls,
        ],
        ports=[{"name": "files", "containerPort": FILES_PORT}],
        readinessProbe={"tcpSocket": {"port": "files"}, "periodSeconds": 5},
        resources={"requests": {"memory": "16Mi", "cpu": "10m"}},
        # A sidecar ends after the conductor, which first finishes its current steps. Until then BMCs fetch its discs.
        restartPolicy="Always",
    )
    volumes = [*_volumes(), objects.empty("shared"), objects.empty("files-tmp"), objects.empty("state")]
    template = objects.pod(
        NAME,
        {
            "initContainers": [prepare, server],
            "containers": [ironic, *_sidecars(args)],
            "volumes": volumes,
            "terminationGracePeriodSeconds": _LEAVES_SECONDS + _STOP_SECONDS,
            "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [_APART]}},
        },
        {"metal-ipi/made-of": changes},
    )
    return objects.manifest(
        "StatefulSet",
        NAME,
        args.namespace,
        NAME,
        spec={
            "serviceName": CONDUCTORS,
            "replicas": args.conductors,
            "podManagementPolicy": "Parallel",
            **objects.pods_of(NAME, template),
        },
    )


def _sidecars(args: IronicArgs) -> list[Object]:
    """Containers beside a conductor that may end before it."""
    found = [metrics.container(args, args.metrics)] if args.metrics else []
    if args.ramdisk.kernel:
        logs = objects.container(
            "ramdisk-logs",
            args.images.ironic,
            ["python3", _RAMDISK_LOGS_PATH, configuration.RAMDISK_LOGS],
            [objects.mount("shared", "/shared"), objects.file("config", _RAMDISK_LOGS_PATH)],
            resources={"requests": {"memory": "16Mi", "cpu": "10m"}},
        )
        found.append(logs)
    return found


_PREPARE = (
    "mkdir -p /shared/html /shared/tftp /shared/images /shared/master /shared/instances /shared/master-iso"
    f" {configuration.RAMDISK_LOGS} {metrics.DIRECTORY} /shared/tmp /var/lib/ironic/lock"
)
_APART = {
    "weight": 100,
    "podAffinityTerm": {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": objects.selector(NAME)},
    },
}


_READ = ("--config-file", "/etc/ironic/ironic.conf", "--config-dir", "/etc/ironic/secrets")
_OWN = {
    "name": "config",
    "mountPath": "/etc/ironic/conductor.conf",
    "subPathExpr": "$(POD_NAME).conf",
    "readOnly": True,
}
"""The file that differs between conductors."""


def _reads() -> Sequence[Object]:
    """The files that every program of Ironic reads."""
    return [
        objects.file("config", "/etc/ironic/ironic.conf"),
        objects.mount("secrets", "/etc/ironic/secrets", read_only=True),
        objects.mount("accounts", "/etc/ironic/accounts", read_only=True),
        objects.mount("tls", "/etc/ironic/tls", read_only=True),
        objects.mount("database-ca", "/etc/ironic/database", read_only=True),
    ]


def _volumes() -> list[Object]:
    return [
        objects.of_map("config", NAME),
        objects.of_secret("secrets", SECRETS),
        objects.of_secret("accounts", ACCOUNTS),
        objects.of_secret("tls", TLS),
        objects.of_secret("database-ca", DATABASE_CA),
        objects.empty("tmp"),
    ]


def database_job(args: IronicArgs, *, changes: object) -> Object:
    """A job that reports what is wrong with a given database, and fails at once. The next `up` runs it again."""
    command = ["python3", _REACH_PATH, *_REACHES_DATABASE]
    mounts = [*_reads(), objects.file("config", _REACH_PATH)]
    container = objects.container("database", args.images.ironic, command, mounts)
    spec = {"restartPolicy": "Never", "containers": [container], "volumes": _volumes()}
    made_of = {"metal-ipi/made-of": changes}
    found = objects.job(f"{NAME}-database", args.namespace, f"{NAME}-database", spec, made_of, again=0)
    found["metadata"]["annotations"] = {"pulumi.com/replaceUnready": "true"}
    return found


def schema_job(args: IronicArgs, *, changes: object) -> Object:
    """A job that upgrades the database's schema to the image's release. It fails if migrations of the release before
    are incomplete.

    `changes` changes with the database's address and account: a job that waits for an unreachable database is replaced.
    """
    return _dbsync(args, "schema", changes, ["ironic-dbsync", *_READ, "upgrade"])


def migrations_job(args: IronicArgs, *, changes: object) -> Object:
    """A job that migrates the data, after all conductors run the new release. `changes` as in `schema_job`."""
    return _dbsync(args, "migrations", changes, ["ironic-dbsync", *_READ, "online_data_migrations"])


def _dbsync(args: IronicArgs, what: str, changes: object, command: Sequence[str]) -> Object:
    mounts = [*_reads(), objects.mount("tmp", "/tmp"), objects.mount("state", "/var/lib/ironic")]  # noqa: S108
    container = objects.container(what, args.images.ironic, command, mounts)
    return objects.job(
        f"{NAME}-{what}-{objects.digest(args.images.ironic)[:8]}",
        args.namespace,
        f"{NAME}-{what}",
        {"containers": [container], "volumes": [*_volumes(), objects.empty("state")]},
        {"metal-ipi/made-of": changes},
    )


def disruption_budget(args: IronicArgs) -> Object:
    """The PodDisruptionBudget: draining the hub's nodes stops at most one conductor at a time."""
    return objects.manifest(
        "PodDisruptionBudget",
        NAME,
        args.namespace,
        NAME,
        spec={"maxUnavailable": 1, "selector": {"matchLabels": objects.selector(NAME)}},
    )
