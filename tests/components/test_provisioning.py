"""The provisioning service's objects against golden files, and the component that declares them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import pytest
import yaml

from metal_ipi.components.provisioning import (
    certificates,
    conductors,
    configuration,
    contract,
    database,
    dhcp,
    image_cache,
    metrics,
    network,
    objects,
    operator_resource,
)
from metal_ipi.components.provisioning.contract import IronicArgs, Operator
from metal_ipi.components.provisioning.service import IronicService
from tests import golden
from tests.mocks import Recorder, is_secret, plain, run, secret

PASSWORD = "hunter2-rotation"
SMALL = IronicArgs(
    kubeconfig="apiVersion: v1",
    namespace="provisioning",
    images=contract.Images(
        ironic="registry.test/ironic:1", database="registry.test/mariadb:1", files="registry.test/f:1"
    ),
    access=contract.NodePorts(address="192.0.2.15", api=31385, files=31400, images=31384),
)
CACHE = contract.ImageCache(
    images=[contract.CachedImage(name="ipa.kernel", url="https://images.test/ipa.kernel", sha256="0" * 64)]
)
LARGE = replace(
    SMALL,
    access=contract.LoadBalancer(address="192.0.2.20", files=["192.0.2.21", "192.0.2.22"], annotations={"pool": "bmc"}),
    images=replace(SMALL.images, dhcp="registry.test/dnsmasq:1"),
    conductors=2,
    conductor_group="hall-b",
    drivers=("redfish", "idrac", "ipmi"),
    automated_cleaning=True,
    plain_boot_files=True,
    database=contract.GivenDatabase(
        host="db.test", port=3306, name="ironic", username="ironic", password=PASSWORD, ca="-----BEGIN CERTIFICATE-----"
    ),
    image_cache=CACHE,
    dhcp=contract.Dhcp(
        interface="eno2", ranges=["192.0.2.50,192.0.2.99"], gateway="192.0.2.1", nameservers=["192.0.2.53"]
    ),
    ramdisk=contract.Ramdisk(
        kernel="cache:ipa.kernel",
        initramfs="https://images.test/i",
        kernel_arguments=["console=ttyS0"],
        ssh_key="ssh-ed25519 AAAA",
    ),
    ca="-----BEGIN CERTIFICATE-----",
    metrics=contract.Metrics(interval_seconds=90, all_servers=True, monitor=True),
    pin_release="38.0",
    extra={"conductor": {"sync_power_state_interval": "120"}},
)


def manifests(args: IronicArgs) -> list[objects.Object]:
    found = [objects.namespace(args.namespace, privileged=args.dhcp is not None), *network.policies(args)]
    if isinstance(args.database, contract.OwnDatabase):
        found += [
            database.configuration(args),
            database.service(args),
            database.server(args, args.database),
            database.accounts_job(args),
        ]
    if args.image_cache is not None:
        found += [
            image_cache.listed(args, args.image_cache),
            image_cache.volume(args, args.image_cache),
            image_cache.service(args),
            image_cache.deployment(args),
        ]
    if args.dhcp is not None:
        found += [dhcp.config_map(args, args.dhcp), dhcp.deployment(args, args.dhcp)]
    if args.metrics is not None:
        found.append(metrics.pod_monitor(args, args.metrics, conductors.NAME))
    if certificates.served(args):
        found += [*certificates.secrets(args), *certificates.rights(args), certificates.daily(args)]
        found.append(certificates.first(args, changes="made"))
    return [
        *found,
        conductors.config_map(args),
        *([conductors.database_job(args, changes="made")] if isinstance(args.database, contract.GivenDatabase) else []),
        conductors.schema_job(args, changes="made"),
        *conductors.services(args),
        conductors.stateful_set(args, changes="made"),
        conductors.migrations_job(args, changes="made"),
        conductors.disruption_budget(args),
    ]


@pytest.mark.parametrize(("name", "args"), [("small", SMALL), ("large", LARGE)])
def test_objects(name: str, args: IronicArgs) -> None:
    plainly = json.loads(json.dumps(manifests(args)))  # YAML would refer to what stands in it twice
    golden.check(f"provisioning-{name}.yaml", yaml.safe_dump_all(plainly, sort_keys=False))


@pytest.mark.parametrize(
    ("name", "args", "operator"),
    [
        ("small", SMALL, Operator(interface="eno2")),
        (
            "large",
            replace(LARGE, access=SMALL.access, conductors=1),
            Operator(version="34.0", address="192.0.2.15", network="192.0.2.0/24"),
        ),
        ("shared", replace(SMALL, conductors=3, metrics=contract.Metrics()), Operator(interface="eno2")),
    ],
)
def test_the_operators_resource(name: str, args: IronicArgs, operator: Operator) -> None:
    found = [*operator_resource.authorities(args), operator_resource.ironic(args, operator)]
    golden.check(f"provisioning-operator-{name}.yaml", yaml.safe_dump_all(found, sort_keys=False))


def test_what_is_carried_out_at_a_rotation() -> None:
    golden.check(
        "provisioning-accounts.sql",
        database.start_statements("administrator-2", "new")
        + database.account_statements("ironic-2", "new", "ironic-1", "administrator-2", "administrator-1"),
    )


@pytest.mark.parametrize("args", [SMALL, LARGE])
def test_only_dhcp_is_in_the_nodes_own_network_and_nothing_else_has_rights(args: IronicArgs) -> None:
    specs = {
        each["metadata"]["name"]: spec.get("jobTemplate", {"spec": spec})["spec"]["template"]["spec"]
        for each in manifests(args)
        if {"template", "jobTemplate"} & (spec := each.get("spec", {})).keys()
    }
    assert {name for name, spec in specs.items() if spec.get("hostNetwork")} == ({"dhcp"} if args.dhcp else set())
    for name, spec in specs.items():
        assert spec["automountServiceAccountToken"] is name.startswith("certificates"), name
        for container in [*spec["containers"], *spec.get("initContainers", [])]:
            given = container["securityContext"]
            assert given["capabilities"]["drop"] == ["ALL"] and given["readOnlyRootFilesystem"] is True
            assert ("add" in given["capabilities"]) == (name == "dhcp")


def test_the_database_s_certificate_is_verified_and_odd_passwords_pass() -> None:
    url = configuration.connection(SMALL, "ironic-1", "a:b/c@d%e")
    assert url.startswith("mysql+pymysql://ironic-1:a%3Ab%2Fc%40d%25e@database.provisioning.svc:3306/ironic?")
    assert url.endswith("&ssl_ca=/etc/ironic/database/ca.crt&ssl_check_hostname=true")
    # oslo.config replaces `$name` and reads `$$` as `$`.
    assert "connection = mysql://a:b$$c@d/e\n" in configuration.secret_conf("mysql://a:b$c@d/e", "rpc-1", "p")


def test_options_of_the_service_s_own_are_told() -> None:
    args = replace(SMALL, extra={"api": {"port": "1", "max_limit": "5"}, "database": {"connection": "sqlite://"}})
    assert configuration.clashes(args) == [("api", "port"), ("database", "connection")]


CREDENTIALS = {
    "ca": "CA",
    "caPrivateKey": f"{PASSWORD}-key",
    "accountsMade": {
        name: {
            "username": f"{name}-1",
            "password": PASSWORD,
            "htpasswd": f"{name}-1:$2b$\n",
            "previousUsername": "",
            "previousPassword": "",
        }
        for name in ("api", "rpc", "ironic", "administrator")
    },
}
KINDS = (
    *("core/v1:Namespace", "core/v1:ConfigMap", "core/v1:Secret", "core/v1:Service", "core/v1:PersistentVolumeClaim"),
    *("apps/v1:StatefulSet", "apps/v1:Deployment", "batch/v1:Job", "networking.k8s.io/v1:NetworkPolicy"),
    *("policy/v1:PodDisruptionBudget", "batch/v1:CronJob", "core/v1:ServiceAccount"),
    *("rbac.authorization.k8s.io/v1:Role", "rbac.authorization.k8s.io/v1:RoleBinding"),
    *("ironic.metal3.io/v1alpha1:Ironic", "monitoring.coreos.com/v1:PodMonitor"),
)


def declared(args: IronicArgs) -> Recorder:
    answers: dict[str, Any] = {f"kubernetes:{kind}": lambda _: {} for kind in KINDS}
    answers["metal-ipi:provisioning:IronicService"] = lambda _: {}
    answers["metal-ipi:index:ServiceCredentials"] = lambda _: {
        **CREDENTIALS,
        **{name: secret(CREDENTIALS[name]) for name in ("caPrivateKey", "accountsMade")},
    }
    recorder = Recorder(answers)
    run(lambda: cast(None, IronicService("it", args)), recorder, {})
    return recorder


def test_each_part_comes_after_what_it_needs() -> None:
    found = declared(SMALL)
    (schema,) = [each.name for each in found.of("kubernetes:batch/v1:Job") if "schema" in each.name]
    (migrations,) = [each.name for each in found.of("kubernetes:batch/v1:Job") if "migrations" in each.name]
    assert "it-database-accounts-1-job" in found.after(schema)
    assert schema in found.after("it-ironic") and "it-ironic" in found.after(migrations)
    # Nothing mounts a certificate before the hub has made it.
    (issued,) = [each.name for each in found.of("kubernetes:batch/v1:Job") if "certificates" in each.name]
    assert all(issued in found.after(name) for name in (schema, "it-ironic", "it-database"))
    # A Service is there when a pod of it answers: what makes the pods cannot wait for it.
    for server in ("it-database", "it-ironic"):
        assert not [name for name in found.after(server) if name == f"{server}-service"]


def test_the_operator_is_given_what_its_resource_names() -> None:
    found = declared(replace(SMALL, ca="PEM", operator=Operator(interface="eno2")))
    spec = found.inputs("it-ironic")["spec"]
    made = {
        found.inputs(name)["metadata"]["name"]: name
        for name in found.after("it-ironic")
        if "metadata" in found.inputs(name)
    }
    named = {spec["apiCredentialsName"], *spec["tls"].values()}
    named |= {spec["database"][name] for name in ("credentialsName", "tlsCertificateName")}
    assert named <= made.keys(), "all of it before the resource"
    assert set(found.inputs(made[spec["apiCredentialsName"]])["stringData"]) == {"username", "password", "htpasswd"}
    assert "it-database-accounts-1-job" in found.after("it-ironic"), "the database is ours"
    assert [each.name for each in found.of("kubernetes:apps/v1:StatefulSet")] == ["it-database"]


def test_data_are_migrated_when_no_conductor_of_the_release_before_is_left() -> None:
    """`ironic-dbsync online_data_migrations` heeds no pin: it takes the newest versions (ironic/db/sqlalchemy/api.py,
    `update_to_latest_versions`)."""
    for pin, jobs in ((None, 1), ("38.0", 0)):
        found = declared(replace(SMALL, pin_release=pin)).of("kubernetes:batch/v1:Job")
        assert len([each for each in found if "migrations" in each.name]) == jobs


def test_credentials_stand_in_secrets_alone() -> None:
    found = declared(SMALL)
    for each in found.resources:
        if each.typ.startswith("kubernetes:") and "Secret" not in each.typ:
            assert PASSWORD not in str(plain(each.inputs)), each.name
    for each in found.of("kubernetes:core/v1:Secret"):
        if "stringData" not in each.inputs:  # filled on the hub
            assert each.name in ("it-ironic-tls-secret", "it-database-tls-secret")
            continue
        assert all(is_secret(text) for text in each.inputs["stringData"].values()) or is_secret(
            each.inputs["stringData"]
        )


def test_a_certificate_that_is_given_takes_the_place_of_the_hub_s_own() -> None:
    """Which another field manager owns: without force, applying it would be a conflict."""
    given = contract.GivenTls(ca="CA", certificate="PEM", private_key=PASSWORD)
    secret_ = declared(replace(SMALL, tls=given)).inputs("it-ironic-tls-secret")
    assert secret_["metadata"]["annotations"] == {"pulumi.com/patchForce": "true"} and secret_["stringData"]
    made = declared(SMALL).inputs("it-ironic-tls-secret")
    assert "annotations" not in made["metadata"] and "stringData" not in made


def test_a_database_that_is_given_is_not_made() -> None:
    found = declared(LARGE)
    names: Sequence[str] = [each.name for each in found.resources]
    # It is looked at before anything waits for pods: `up` says at once what is wrong with it.
    (schema,) = (name for name in names if "schema" in name)
    waiting = ("it-ironic", "it-ironic-service", "it-ironic-0-files-service", schema)
    assert all("it-ironic-database-job" in found.after(name) for name in waiting)
    assert not [name for name in names if name.startswith("it-database")]
    assert {"it-image-cache", "it-dhcp"} <= set(names)


def test_who_renews_certificates_may_do_nothing_else() -> None:
    """Kubernetes cannot say of `create`, `list` and `watch` which object is meant."""
    (role,) = (each for each in certificates.rights(SMALL) if each["kind"] == "Role")
    assert [(rule["resources"], rule["resourceNames"], rule["verbs"]) for rule in role["rules"]] == [
        (["secrets"], ["ironic-tls", "database-tls"], ["get", "patch"]),
        (["statefulsets"], ["ironic"], ["get", "patch"]),
    ]
    # A certificate that is given is nobody's to renew; the operator sees by itself that a Secret has changed.
    given = contract.GivenTls(ca="CA", certificate="PEM", private_key=PASSWORD)
    assert [each.secret for each in certificates.served(replace(SMALL, tls=given))] == ["database-tls"]
    assert certificates.served(replace(LARGE, tls=given)) == []
    assert not any(each.restarts for each in certificates.served(replace(SMALL, operator=Operator(interface="eno2"))))
