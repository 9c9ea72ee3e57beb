"""Ironic with a database that is not its own, reached at addresses of the hub's load balancer: installed, upgraded.

The database is MariaDB in another namespace, with an authority of its own. The load balancer is kube-vip.
"""

from __future__ import annotations

import base64
import ipaddress
import json
from collections.abc import Generator
from datetime import datetime
from typing import Any

import pytest
import trustme

from lab.hub import images
from lab.network import plan
from tests.end_to_end.conftest import copies
from tests.end_to_end.project import Project, await_
from tests.end_to_end.provisioned import (
    API,
    BEFORE,
    CLUSTER,
    CONDUCTORS,
    ON_A_HUB,
    SERVERS,
    SPACE,
    Ironic,
    OlderIronic,
    kubectl,
    stack_of,
)

pytestmark = [*ON_A_HUB, pytest.mark.nightly]
_ELSEWHERE = "elsewhere"
_HOST = f"db.{_ELSEWHERE}.svc"
_PASSWORD = "it's/a:long&winding@road"
_AT_ONCE_SECONDS = 30.0
_AT_NODE_PORT = "https://192.0.2.15:31385"
"""Where the committed stack of the cluster has its Ironic."""
_BALANCED = [str(each) for each in list(ipaddress.IPv4Network(plan.HUB_BALANCED))[4:7]]
"""The address of the API, and one for each conductor's files."""


def _database(ca: trustme.CA) -> list[dict[str, Any]]:
    """MariaDB and its account, in its namespace."""
    pair = ca.issue_cert(_HOST)
    account = (
        "CREATE DATABASE IF NOT EXISTS ironic CHARACTER SET utf8mb3;\n"
        f'CREATE USER IF NOT EXISTS ironic@"%" IDENTIFIED BY "{_PASSWORD}" REQUIRE SSL;\n'
        'GRANT ALL ON ironic.* TO ironic@"%";\n'
    )
    data = {
        "tls.crt": pair.cert_chain_pems[0].bytes(),
        "tls.key": pair.private_key_pem.bytes(),
        "init.sql": account.encode(),
    }
    told = ("--ssl-cert", "--ssl-key", "--init-file")
    arguments = [f"{option}=/given/{name}" for option, name in zip(told, data, strict=True)]
    mounts = {"given": "/given", "data": "/var/lib/mysql", "run": "/run/mysqld", "tmp": "/tmp"}
    container = {
        "name": "db",
        "image": images.MARIADB.reference,
        "args": ["--require-secure-transport=ON", *arguments],
        "volumeMounts": [{"name": name, "mountPath": path} for name, path in mounts.items()],
        "readinessProbe": {"tcpSocket": {"port": 3306}, "periodSeconds": 1},
    }
    volumes = [{"name": "given", "secret": {"secretName": "db"}}, *({"name": n, "emptyDir": {}} for n in [*mounts][1:])]
    pod = {"containers": [container], "volumes": volumes, "securityContext": {"fsGroup": images.MARIADB_USER}}
    metadata = {"name": "db", "namespace": _ELSEWHERE, "labels": {"app": "db"}}
    encoded = {name: base64.b64encode(each).decode() for name, each in data.items()}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _ELSEWHERE}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": encoded},
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata,
            "spec": {"selector": {"app": "db"}, "ports": [{"port": 3306}]},
        },
    ]


@pytest.fixture(scope="module")
def given() -> dict[str, Any]:
    """The settings of the database, with its authority beside."""
    ca = trustme.CA()
    pem = ca.cert_pem.bytes().decode()
    settings = {"type": "external", "host": _HOST, "port": 3306, "name": "ironic", "ca": pem}
    return {"settings": {**settings, "username": "ironic", "password": _PASSWORD}, "ca": ca}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, given: dict[str, Any]) -> Generator[Project]:
    """A copy whose hub has the database, and nothing of the service yet."""
    directory = tmp_path_factory.mktemp("elsewhere")
    older = OlderIronic(directory)
    for project in copies(directory, stack="hub"):
        project.lab("up", "--machines", project.machines, "--rack", str(SERVERS))
        project.lab("hub")
        for document in _database(given["ca"]):
            kubectl(project, "apply", "--filename", "-", space=_ELSEWHERE, stdin=json.dumps(document))
        kubectl(project, "wait", "--for=condition=Ready", "pod/db", "--timeout=120s", space=_ELSEWHERE)
        access = {"type": "load-balancer", "address": _BALANCED[0], "files": _BALANCED[1:]}
        project.keep(provisioning={"access": access, "images": {"ironic": older.push(project)}})
        yield project
        project.assert_down()


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"ca": trustme.CA().cert_pem.bytes().decode()}, "has a certificate that database.ca and database.host do not"),
        ({"password": "guessed"}, f"{_HOST}:3306 refuses the account 'ironic': check database.username and"),
        ({"port": 3307}, f"{_HOST}:3307 does not answer: "),
    ],
)
def test_what_is_wrong_with_the_database_is_told_at_once(
    project: Project, given: dict[str, Any], wrong: dict[str, Any], told: str
) -> None:
    """By name, before Ironic asks it; and the next `up` looks again."""
    project.keep(provisioning={"database": {**given["settings"], **wrong}})
    assert told in " ".join(project.make("up", fails=True, seconds=240).text.split())
    job = json.loads(kubectl(project, "get", "job", "ironic-database", "--output", "json"))
    (failed,) = (each for each in job["status"]["conditions"] if each["type"] == "Failed")
    took = datetime.fromisoformat(failed["lastTransitionTime"]) - datetime.fromisoformat(job["status"]["startTime"])
    assert took.total_seconds() < _AT_ONCE_SECONDS
    assert "statefulset" not in kubectl(project, "get", "statefulsets", "--output", "name")


def test_the_whole_service_and_an_upgrade(project: Project, given: dict[str, Any], tmp_path_factory: Any) -> None:
    project.keep(provisioning={"database": given["settings"]})
    project.make("up", seconds=500)
    ironic = Ironic(project, tmp_path_factory.mktemp("ironic"))
    assert ironic.endpoint == f"https://{_BALANCED[0]}:6385" and ironic("version") == API[BEFORE]
    await_(lambda: ironic("conductors") == CONDUCTORS, "both conductors alive", 90)
    assert kubectl(project, "get", "pods", "--selector", "app.kubernetes.io/component=database").strip() == ""
    project.assert_unchanged("up")
    project.keep(provisioning={"images": {"ironic": images.IRONIC.reference}, "pinRelease": BEFORE})
    assert "ironic-schema-" in project.make("up", seconds=500).out
    project.keep(provisioning={"pinRelease": None})
    assert "ironic-migrations-" in project.make("up", seconds=500).out
    await_(lambda: ironic("version") == API["now"], "the release of now", 60)
    asked = f'MYSQL_PWD="{_PASSWORD}" mariadb --ssl --host=127.0.0.1 --user=ironic ironic'
    query = "SELECT COUNT(*) FROM conductors; SHOW TABLES LIKE 'metal_ipi_probe'"
    found = kubectl(project, "exec", "db", "--", "sh", "-c", f'{asked} -N -e "{query}"', space=_ELSEWHERE)
    assert found.split() == [str(len(CONDUCTORS))]
    project.assert_unchanged("up", "preview")
    project.make("refresh")  # the state learns what the hub has put into the Secrets of `up`
    project.assert_unchanged("up")


def test_a_cluster_on_servers_that_load_their_discs_from_there(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From each conductor's own address, in the machines' network."""
    stack = project.root / "stacks" / f"Pulumi.{CLUSTER}.yaml"
    stack.write_text(stack.read_text().replace(_AT_NODE_PORT, f"https://{_BALANCED[0]}:6385"))
    with stack_of(project, CLUSTER):
        project.make("up", seconds=500)
        services = json.loads(kubectl(project, "get", "services", "--output", "json"))["items"]
        balanced = {
            each["metadata"]["name"]: each["status"]["loadBalancer"]["ingress"][0]["ip"]
            for each in services
            if each["spec"]["type"] == "LoadBalancer"
        }
        assert balanced == dict(zip(("ironic", "ironic-0-files", "ironic-1-files"), _BALANCED, strict=True))
        assert [each["boots"][-2:] for each in project.rack("servers").values()] == [["cd", "disk"]] * SERVERS
        logs = kubectl(project, "logs", "ironic-0", "--container", "ironic", space=SPACE)
        logs += kubectl(project, "logs", "ironic-1", "--container", "ironic", space=SPACE)
        assert any(f"https://{address}:6183/" in logs for address in _BALANCED[1:])
        monkeypatch.setenv("KEEP_LAB", "1")
        project.make("down")
