"""The service's TLS certificates. The hub issues and renews them; their content is not part of the state.

`up` creates the certificate authority and empty Secrets. A job fills the Secrets before anything mounts them, and a
CronJob checks them once a day: see renew_certificates.py. Their service account may read and change only these Secrets
and the StatefulSet of the conductors.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from metal_ipi.components.provisioning import conductors, configuration, database, objects
from metal_ipi.components.provisioning.contract import IronicArgs, MadeTls, OwnDatabase
from metal_ipi.components.provisioning.objects import Object

NAME = "certificates"
AUTHORITY = "certificate-authority"
"""The Secret with the authority's `tls.crt` and `tls.key`. Only the jobs mount it."""
_PROGRAM = Path(__file__).with_name("renew_certificates.py")
_DAILY = "27 2 * * *"


@dataclass(frozen=True, kw_only=True)
class Served:
    """A certificate that is issued on the hub."""

    secret: str
    component: str
    names: Sequence[str]
    """The DNS names and IP addresses that it is valid for."""
    restarts: str | None = None
    """The StatefulSet that reads it only at start, and so must be restarted."""


def served(args: IronicArgs) -> list[Served]:
    """The certificates that the hub issues: all that are not given by the user."""
    found: list[Served] = []
    if isinstance(args.tls, MadeTls):
        restarts = conductors.NAME if args.operator is None else None
        names = configuration.certificate_names(args)
        found.append(Served(secret=conductors.TLS, component=conductors.NAME, names=names, restarts=restarts))
    if isinstance(args.database, OwnDatabase):
        names = database.server_name(args.namespace)
        found.append(Served(secret=database.TLS, component=database.NAME, names=names))
    return found


def wanted(args: IronicArgs) -> str:
    """The JSON input of renew_certificates.py."""
    tls = args.tls if isinstance(args.tls, MadeTls) else MadeTls()
    return json.dumps(
        {
            "certificates": {each.secret: {"names": each.names, "restarts": each.restarts} for each in served(args)},
            "validDays": tls.valid_days,
            "renewBeforeDays": tls.renew_before_days,
        },
        indent=2,
    )


def secrets(args: IronicArgs) -> list[Object]:
    """The Secrets, without their content."""
    return [
        objects.manifest("Secret", each.secret, args.namespace, each.component, type="Opaque") for each in served(args)
    ]


def rights(args: IronicArgs) -> list[Object]:
    """The service account of the jobs, and its role."""
    core = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [each.secret for each in served(args)]}
    rules = [{**core, "verbs": ["get", "patch"]}]
    if started := [each.restarts for each in served(args) if each.restarts]:
        sets = {"apiGroups": ["apps"], "resources": ["statefulsets"], "resourceNames": started}
        rules.append({**sets, "verbs": ["get", "patch"]})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": NAME}
    account = {"kind": "ServiceAccount", "name": NAME, "namespace": args.namespace}
    return [
        objects.manifest("ServiceAccount", NAME, args.namespace, NAME, automountServiceAccountToken=False),
        objects.manifest("Role", NAME, args.namespace, NAME, rules=rules),
        objects.manifest("RoleBinding", NAME, args.namespace, NAME, roleRef=role, subjects=[account]),
    ]


def program(args: IronicArgs) -> Object:
    """The ConfigMap with the program and its input."""
    data = {_PROGRAM.name: _PROGRAM.read_text(), "wanted.json": wanted(args)}
    return objects.manifest("ConfigMap", NAME, args.namespace, NAME, data=data)


def first(args: IronicArgs, *, changes: object) -> Object:
    """The job of `up`, which runs again when other certificates are wanted. `changes` changes with the authority."""
    name = f"{NAME}-{objects.digest(wanted(args))[:8]}"
    return objects.job(name, args.namespace, NAME, _pod(args, "--by-up"), {"metal-ipi/made-of": changes})


def daily(args: IronicArgs) -> Object:
    """The CronJob that renews the certificates."""
    template = objects.pod(NAME, {"restartPolicy": "OnFailure", **_pod(args)})
    spec = {
        "schedule": _DAILY,
        "concurrencyPolicy": "Forbid",
        "startingDeadlineSeconds": 86400,  # a hub that was off runs the missed job later
        "successfulJobsHistoryLimit": 1,
        "failedJobsHistoryLimit": 1,
        "jobTemplate": {"spec": {"backoffLimit": 10, "template": template}},
    }
    return objects.manifest("CronJob", NAME, args.namespace, NAME, spec=spec)


def _pod(args: IronicArgs, *flags: str) -> Object:
    program, authority = "/etc/certificates/program", "/etc/certificates/authority"
    container = objects.container(
        NAME,
        args.images.ironic,
        ["python3", f"{program}/{_PROGRAM.name}", f"{program}/wanted.json", authority, *flags],
        [
            objects.mount("program", program, read_only=True),
            objects.mount("authority", authority, read_only=True),
        ],
    )
    return {
        "serviceAccountName": NAME,
        "automountServiceAccountToken": True,
        "containers": [container],
        "volumes": [objects.of_map("program", NAME), objects.of_secret("authority", AUTHORITY)],
    }
