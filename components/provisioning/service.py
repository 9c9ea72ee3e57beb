"""The component that declares all objects of the service on the hub, each after those that it needs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes
from pulumi_kubernetes.apps import v1 as apps
from pulumi_kubernetes.batch import v1 as batch
from pulumi_kubernetes.core import v1 as core
from pulumi_kubernetes.networking import v1 as networking
from pulumi_kubernetes.policy import v1 as policy
from pulumi_kubernetes.rbac import v1 as rbac

from metal_ipi.components.provisioning import (
    certificates,
    conductors,
    configuration,
    database,
    dhcp,
    image_cache,
    metrics,
    network,
    objects,
    operator_resource,
)
from metal_ipi.components.provisioning.contract import GivenDatabase, GivenTls, IronicArgs, Operator
from metal_ipi.components.provisioning.objects import Object
from metal_ipi.provider.types import ServiceCredentials, ServiceCredentialsArgs

_KINDS: Mapping[str, Callable[..., pulumi.CustomResource]] = {
    "Namespace": core.Namespace,
    "ConfigMap": core.ConfigMap,
    "Secret": core.Secret,
    "Service": core.Service,
    "PersistentVolumeClaim": core.PersistentVolumeClaim,
    "StatefulSet": apps.StatefulSet,
    "Deployment": apps.Deployment,
    "Job": batch.Job,
    "CronJob": batch.CronJob,
    "ServiceAccount": core.ServiceAccount,
    "Role": rbac.Role,
    "RoleBinding": rbac.RoleBinding,
    "NetworkPolicy": networking.NetworkPolicy,
    "PodDisruptionBudget": policy.PodDisruptionBudget,
}
_READY_MINUTES = 10


class IronicService(pulumi.ComponentResource):
    """Ironic, its database and everything else it needs, on one hub."""

    endpoint: pulumi.Output[str]
    """The API's URL, known once the API answers and, unless a release is pinned, the data are migrated."""
    ca: pulumi.Output[str]
    """The certificate authority of the API's certificate, PEM."""
    username: pulumi.Output[str]
    """An account of the API."""
    password: pulumi.Output[str]
    """The account's password. Secret."""

    def __init__(self, name: str, args: IronicArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("metal-ipi:provisioning:IronicService", name, None, opts)
        self._name = name
        self._args = args
        hub = kubernetes.Provider(
            f"{name}-hub",
            kubeconfig=pulumi.Output.secret(args.kubeconfig),
            enable_server_side_apply=True,
            # Otherwise a changed password would delete the Secret before it is created again.
            enable_secret_mutable=True,
            enable_config_map_mutable=True,
            opts=pulumi.ResourceOptions(parent=self),
        )
        self._hub = pulumi.ResourceOptions(parent=self, provider=hub)
        self._credentials = self._make_credentials()
        in_nodes_network = args.dhcp is not None or args.operator is not None
        self._space = [self._declare(objects.namespace(args.namespace, privileged=in_nodes_network))]
        self._served = self._certificates()
        last = self._by_objects() if args.operator is None else [self._by_operator(args.operator)]
        self.endpoint = pulumi.Output.all(*(each.id for each in last)).apply(lambda _: configuration.api_url(args))
        given = args.tls
        self.ca = pulumi.Output.from_input(given.ca) if isinstance(given, GivenTls) else self._credentials.ca
        self.username = pulumi.Output.unsecret(self._account("api", "username"))
        self.password = pulumi.Output.secret(self._account("api", "password"))
        self.register_outputs(
            {"endpoint": self.endpoint, "ca": self.ca, "username": self.username, "password": self.password}
        )

    def _by_objects(self) -> Sequence[pulumi.CustomResource]:
        """Declare conductors and all other objects; returns those that come last."""
        args = self._args
        policies = [self._declare(each) for each in network.policies(args)]
        secrets = self._secrets()
        stored = self._database()
        cached = self._image_cache()
        self._dhcp()

        config = self._declare(conductors.config_map(args))
        given = args.database
        reaches = _stand_in_for(self._connection, given.ca if isinstance(given, GivenDatabase) else "")
        ready = [*policies, *secrets, *self._served, config]
        checked: list[pulumi.Resource] = []
        if isinstance(args.database, GivenDatabase):
            checked = [self._declare(conductors.database_job(args, changes=reaches), after=ready)]
        # Pulumi waits for a Service until it has pods: if the database check fails, `up` must not wait for that.
        reached = [self._declare(each, after=checked) for each in conductors.services(args)]
        schema = self._declare(conductors.schema_job(args, changes=reaches), after=[*ready, *checked, *stored])
        self._declare(conductors.disruption_budget(args))
        if args.metrics is not None and args.metrics.monitor:
            self._declare(metrics.pod_monitor(args, args.metrics, conductors.NAME))
        # Everything that conductors read only at start.
        certificate = args.tls.certificate if isinstance(args.tls, GivenTls) else self._credentials.ca
        made_of = (conductors.made_of(args), certificates.wanted(args), certificate, self._connection)
        changes = _stand_in_for(*made_of)
        running = self._declare(conductors.stateful_set(args, changes=changes), after=[schema, *cached])
        last = [running, *reached]
        if args.pin_release is None:
            # It migrates data to the newest version, which conductors of the previous release cannot read.
            last = [self._declare(conductors.migrations_job(args, changes=reaches), after=last)]
        return last

    def _by_operator(self, operator: Operator) -> pulumi.CustomResource:
        """Declare the operator's resource, after the objects that it refers to."""
        args, given = self._args, self._args.database
        reached = (
            {"username": given.username, "password": given.password}
            if isinstance(given, GivenDatabase)
            else {part: self._account("ironic", part) for part in ("username", "password")}
        )
        texts: dict[str, dict[str, pulumi.Input[str]]] = {
            operator_resource.API_ACCOUNT: {
                part: self._account("api", part) for part in ("username", "password", "htpasswd")
            },
            operator_resource.DATABASE_ACCOUNT: {**reached},
            **self._given_pair(),
            operator_resource.DATABASE_CA: {
                "ca.crt": given.ca if isinstance(given, GivenDatabase) else self._credentials.ca
            },
        }
        needed = [self._secret(name, operator_resource.NAME, each) for name, each in texts.items()]
        needed += [self._declare(each) for each in operator_resource.authorities(args)]
        needed += [*self._served, *self._database(), *self._image_cache()]
        return self._declare(operator_resource.ironic(args, operator), after=needed)

    # --- credentials -----------------------------------------------------------------------------------------------

    def _make_credentials(self) -> ServiceCredentials:
        args = self._args
        return ServiceCredentials(
            f"{self._name}-credentials",
            ServiceCredentialsArgs(accounts=["api", "rpc", "ironic", "administrator"], rotation=args.rotation),
            pulumi.ResourceOptions(parent=self),
        )

    def _account(self, name: str, part: str) -> pulumi.Output[str]:
        return self._credentials.accounts_made.apply(lambda made: str(made[name][part]))

    def _given_pair(self) -> dict[str, dict[str, pulumi.Input[str]]]:
        """The Secret with a certificate that the user gives."""
        given = self._args.tls
        if not isinstance(given, GivenTls):
            return {}
        return {conductors.TLS: {"tls.crt": given.certificate, "tls.key": given.private_key, "ca.crt": given.ca}}

    def _certificates(self) -> list[pulumi.CustomResource]:
        """Declare the jobs that issue and renew certificates; returns the first job, which must end before the Secrets
        are mounted."""
        args = self._args
        if not certificates.served(args):
            return []
        signs: dict[str, pulumi.Input[str]] = {
            "tls.crt": self._credentials.ca,
            "tls.key": self._credentials.ca_private_key,
        }
        needed = [
            self._secret(certificates.AUTHORITY, certificates.NAME, signs),
            *(
                self._declare(each)
                for each in (*certificates.secrets(args), *certificates.rights(args), certificates.program(args))
            ),
        ]
        self._declare(certificates.daily(args), after=needed)
        changes = _stand_in_for(self._credentials.ca)
        return [self._declare(certificates.first(args, changes=changes), after=needed)]

    @property
    def _connection(self) -> pulumi.Output[str]:
        given = self._args.database
        account = (
            (given.username, given.password)
            if isinstance(given, GivenDatabase)
            else (self._account("ironic", "username"), self._account("ironic", "password"))
        )
        return _told(partial(configuration.connection, self._args), *account)

    def _secrets(self) -> list[pulumi.CustomResource]:
        given = self._args.database
        database_ca = given.ca if isinstance(given, GivenDatabase) else self._credentials.ca
        rpc = [self._account("rpc", part) for part in ("username", "password")]
        conf = _told(configuration.secret_conf, self._connection, *rpc)
        accounts = {name: self._account(name, "htpasswd") for name in ("api", "rpc")}
        texts: dict[str, dict[str, pulumi.Input[str]]] = {
            conductors.SECRETS: {"secrets.conf": conf},
            conductors.ACCOUNTS: {**accounts},
            **self._given_pair(),
            conductors.DATABASE_CA: {"ca.crt": database_ca},
        }
        return [self._secret(name, conductors.NAME, each) for name, each in texts.items()]

    # --- parts -----------------------------------------------------------------------------------------------------

    def _database(self) -> list[pulumi.CustomResource]:
        args = self._args
        if isinstance(args.database, GivenDatabase):
            return []
        administrator = [self._account("administrator", part) for part in ("username", "password")]
        previous = [self._account("administrator", f"previous{part}") for part in ("Username", "Password")]
        ironic = [self._account("ironic", part) for part in ("username", "password", "previousUsername")]
        statements: dict[str, pulumi.Input[str]] = {
            "start.sql": _told(database.start_statements, *administrator),
            "client.cnf": _told(database.client, *administrator, args.namespace),
            "local.cnf": _told(database.local_client, administrator[1]),
            "previous.cnf": _told(database.client, *previous, args.namespace),
            "accounts.sql": _told(database.account_statements, *ironic, administrator[0], previous[0]),
        }
        needed = [
            *self._served,
            self._secret(database.SETUP, database.NAME, statements),
            self._declare(database.configuration(args)),
        ]
        # Pulumi waits for a Service until a pod answers, so no pod may depend on its own Service.
        name = self._declare(database.service(args))
        server = self._declare(database.server(args, args.database), after=needed)
        return [self._declare(database.accounts_job(args), after=[server, name])]

    def _image_cache(self) -> list[pulumi.CustomResource]:
        args, cache = self._args, self._args.image_cache
        if cache is None:
            return []
        needed = [
            self._declare(each)
            for each in (
                image_cache.listed(args, cache),
                image_cache.program(args),
                image_cache.volume(args, cache),
            )
        ]
        reached = self._declare(image_cache.service(args))
        return [reached, self._declare(image_cache.deployment(args), after=[*needed, *self._served])]

    def _dhcp(self) -> None:
        args = self._args
        if args.dhcp is not None:
            config = self._declare(dhcp.config_map(args, args.dhcp))
            self._declare(dhcp.deployment(args, args.dhcp), after=[config])

    def _secret(self, name: str, component: str, texts: Mapping[str, pulumi.Input[str]]) -> pulumi.CustomResource:
        data = {key: pulumi.Output.secret(text) for key, text in texts.items()}
        secret = objects.manifest("Secret", name, self._args.namespace, component, stringData=data, type="Opaque")
        if name == conductors.TLS:  # the job on the hub may have written its content before
            secret["metadata"]["annotations"] = {"pulumi.com/patchForce": "true"}
        return self._declare(secret)

    def _declare(self, manifest: Object, after: Sequence[pulumi.Resource] = ()) -> pulumi.CustomResource:
        """Declare an object on the hub, after its namespace and the objects that it needs."""
        kind, metadata = manifest["kind"], manifest["metadata"]
        fields = {_argument(key): value for key, value in manifest.items() if key not in ("apiVersion", "kind")}
        space = [] if kind == "Namespace" else self._space
        name = f"{self._name}-{metadata['name']}"
        if kind not in ("StatefulSet", "Deployment", "Ironic"):
            name += f"-{kind.lower()}"
        opts = pulumi.ResourceOptions.merge(self._hub, self._after([*space, *after]))
        if kind in _KINDS:
            return _KINDS[kind](name, opts=opts, **fields)
        version = manifest["apiVersion"]
        return kubernetes.apiextensions.CustomResource(name, api_version=version, kind=kind, opts=opts, **fields)

    @staticmethod
    def _after(needed: Sequence[pulumi.Resource]) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(
            depends_on=needed,
            custom_timeouts=pulumi.CustomTimeouts(create=f"{_READY_MINUTES}m", update=f"{2 * _READY_MINUTES}m"),
        )


def _argument(key: str) -> str:
    return re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", key)


def _stand_in_for(*values: Any) -> pulumi.Output[str]:
    """A digest that changes with these values and does not reveal them."""
    return pulumi.Output.unsecret(_told(objects.digest, *values))


def _told(function: Callable[..., str], *values: Any) -> pulumi.Output[str]:
    """A text made from values that are known later."""
    return pulumi.Output.all(*values).apply(lambda known: function(*(str(each) for each in known)))
