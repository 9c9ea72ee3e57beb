"""Ironic as a service on the lab's hub: installed, rotated, with conductors and a database that die, and removed."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Generator, Mapping
from datetime import datetime, timedelta, tzinfo
from urllib.parse import urlsplit

import pytest

from lab.hub import images
from lab.hub.credentials import NODE
from lab.hub.layout import HubLayout
from metal_ipi.components.provisioning import renew_certificates
from tests.end_to_end import racks
from tests.end_to_end.conftest import copies
from tests.end_to_end.project import Project, await_
from tests.end_to_end.provisioned import (
    CLUSTER,
    CONDUCTORS,
    ON_A_HUB,
    SERVERS,
    SPACE,
    Ironic,
    assert_installed,
    kubectl,
    stack_of,
)

_CACHE = "app.kubernetes.io/component=image-cache"

pytestmark = [*ON_A_HUB, pytest.mark.nightly]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Generator[Project]:
    """A copy whose hub has the service."""
    for recipe in images.ALL:
        recipe.ensure(lambda line: None)
    for project in copies(tmp_path_factory.mktemp("provisioning"), stack="hub"):
        # Beside the rack that test_a_cluster_on_its_servers takes; the stack of a hub takes the lab as it is.
        project.lab("up", "--machines", project.machines, "--rack", str(SERVERS))
        project.keep(
            provisioning={
                "metrics": {"allServers": True},
                "imageCache": {"images": [_image(project, "initramfs")], "storage": "64Mi"},
            }
        )
        project.make("up", seconds=300)
        yield project
        project.assert_down()


@pytest.fixture(scope="module")
def ironic(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Ironic:
    return Ironic(project, tmp_path_factory.mktemp("ironic"))


def test_conductors_share_the_nodes_and_nobody_else_is_let_in(project: Project, ironic: Ironic) -> None:
    assert ironic("conductors") == CONDUCTORS
    assert ironic("accounts") == [401, 401]
    # Whichever API is asked, the conductor that a node belongs to is asked by it, by name.
    ironic("enrol", "12")
    assert set(ironic("nodes").values()) == set(CONDUCTORS)
    project.assert_unchanged("up", "preview")


def _image(project: Project, name: str) -> dict[str, str]:
    """One of the image cache's, which the facility's boot server has."""
    path = project.layout.boot / "images" / name
    path.write_text(f"{name} of a ramdisk")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return {"name": name, "url": f"http://boot.facility.test/images/{name}", "sha256": digest}


def _cached(project: Project, ironic: Ironic, name: str) -> str:
    """What a server is given by the image cache: a page of the web server where it has no such file yet."""
    url = f"https://{urlsplit(ironic.endpoint).hostname}:31384/{name}"
    return project.facility("curl", "--silent", "--show-error", "--cacert", str(ironic.authority), url)


def test_images_are_fetched_once_and_served(project: Project, ironic: Ironic) -> None:
    assert _cached(project, ironic, "initramfs") == "initramfs of a ramdisk"
    (project.layout.boot / "images/initramfs").unlink()
    assert _cached(project, ironic, "initramfs") == "initramfs of a ramdisk"


def test_no_credentials_in_clear(project: Project, ironic: Ironic) -> None:
    pods = kubectl(project, "get", "pods,configmaps,jobs,statefulsets", "--output", "json")
    logs = "".join(path.read_text(errors="replace") for path in HubLayout(project.layout.hub).logs.rglob("*.log"))
    state = project.checkpoint.read_text()
    kept = json.loads(kubectl(project, "get", "secrets", "--output", "json"))["items"]
    assert kept, "there are Secrets"
    for text in (pods, logs, state):
        assert ironic.password not in text


def test_passwords_are_rotated_while_clients_go_on(project: Project, ironic: Ironic) -> None:
    """And another image is cached in the same `up`, without the cache being started again."""
    before, seen = ironic.user, list[dict[str, int]]()
    cache = kubectl(project, "get", "pods", "--selector", _CACHE, "--output", "name")
    poll = threading.Thread(target=lambda: seen.append(ironic("poll", "45", seconds=75)))
    poll.start()
    images = {"images": [_image(project, name) for name in ("initramfs", "kernel")], "storage": "64Mi"}
    project.keep(provisioning={"rotation": 2, "imageCache": images})
    project.make("up", seconds=300)
    poll.join()
    # The account of before, all the while that conductors were started again one by one.
    assert set(seen[0]) == {"200"} and seen[0]["200"] > 50, seen
    ironic.renew()
    assert (before, ironic.user) == ("api-1", "api-2")
    await_(lambda: ironic("conductors") == CONDUCTORS, "both conductors alive", 90)
    project.assert_unchanged("up")
    await_(lambda: _cached(project, ironic, "kernel") == "kernel of a ramdisk", "the second image", 120)
    assert kubectl(project, "get", "pods", "--selector", _CACHE, "--output", "name") == cache


def _serial(project: Project, address: str, *more: str) -> str:
    """The number of the certificate that is served at an address on the hub; empty where nobody answers."""
    dial = f"timeout 5 openssl s_client -connect {address} {' '.join(more)} </dev/null 2>/dev/null"
    command = ("sh", "-c", f"{dial} | openssl x509 -noout -serial 2>/dev/null || true")
    return kubectl(project, "exec", "deployment/image-cache", "--container", "fetch", "--", *command).strip()


def _as_of(days: int, project: Project) -> dict[str, dict[str, str]]:
    """What the hub's own Secrets would hold, had their certificates been made so many days ago."""

    class Then(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:
            return datetime.now(tz) - timedelta(days=days)

    def content(kind: str, name: str) -> dict[str, str]:
        return json.loads(kubectl(project, "get", kind, name, "--output", "json"))["data"]

    pair = {key: base64.b64decode(each) for key, each in content("secret", "certificate-authority").items()}
    authority = renew_certificates.Authority(pair["tls.crt"], pair["tls.key"])
    wanted = json.loads(content("configmap", "certificates")["wanted.json"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(renew_certificates, "datetime", Then)
        made = {name: authority.issue(one["names"], 397) for name, one in wanted["certificates"].items()}
    return {name: {key: base64.b64encode(part).decode() for key, part in each.items()} for name, each in made.items()}


def test_certificates_are_renewed_by_the_hub_while_clients_go_on(project: Project, ironic: Ironic) -> None:
    """A week before their end, by the job that comes daily. The next `up` has nothing to do."""
    conductors = [f"{name}.ironic-conductors.{SPACE}.svc.cluster.local" for name in CONDUCTORS]
    at_once = {
        "database": (f"database.{SPACE}.svc:3306", "-starttls", "mysql"),
        "image cache": (f"image-cache.{SPACE}.svc:6184",),
        **{f"boot files of {name}": (f"{name}-files.{SPACE}.svc:6183",) for name in CONDUCTORS},
    }
    started = {
        **{f"API of {host}": (f"{host}:6385",) for host in conductors},
        **{f"RPC of {host}": (f"{host}:8089",) for host in conductors},
    }

    def served(what: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
        return {name: _serial(project, *where) for name, where in what.items()}

    def another(what: Mapping[str, tuple[str, ...]], than: Mapping[str, str]) -> bool:
        return all(serial and serial != than[name] for name, serial in served(what).items())

    seen: dict[str, dict[str, int]] = {}
    images = f"https://{urlsplit(ironic.endpoint).hostname}:31384"
    asked = {"API": (None, ()), "images": (images, ("/initramfs",))}

    def poll(name: str) -> None:
        endpoint, path = asked[name]
        seen[name] = ironic("poll", "240", *path, seconds=400, endpoint=endpoint)

    database = kubectl(project, "get", "pod", "database-0", "--output", "jsonpath={.metadata.uid}")
    first = served({**at_once, **started})
    polls = [threading.Thread(target=poll, args=(name,)) for name in asked]
    for each in polls:
        each.start()
    for name, content in _as_of(390, project).items():
        kubectl(project, "patch", "secret", name, "--type", "merge", "--patch", json.dumps({"data": content}))
    await_(lambda: another(at_once, first), "the certificates that end soon are served", 150)
    old = served(at_once)
    assert served(started) == {name: first[name] for name in started}, "conductors read theirs when they start"
    kubectl(project, "create", "job", "renewal", "--from=cronjob/certificates")
    await_(lambda: another({**at_once, **started}, {**first, **old}), "new certificates everywhere", 240)
    assert kubectl(project, "get", "pod", "database-0", "--output", "jsonpath={.metadata.uid}") == database
    for each in polls:
        each.join()
    assert all(set(each) == {"200"} and each["200"] > 200 for each in seen.values()), seen
    log = kubectl(project, "logs", "job/renewal")
    assert log.count("a new certificate, for it ends at") == 2 and "ironic: its pods are started again" in log
    await_(lambda: ironic("conductors") == CONDUCTORS, "both conductors alive", 90)
    project.assert_unchanged("up", "preview")
    project.make("refresh")  # the state learns what the Secrets hold now
    project.assert_unchanged("up")
    kubectl(project, "create", "job", "again", "--from=cronjob/certificates")
    kubectl(project, "wait", "--for=condition=complete", "job/again", "--timeout=60s")
    assert kubectl(project, "logs", "job/again").strip() == "no certificate is near its end"


def test_a_conductor_that_dies_comes_back_under_its_name(project: Project, ironic: Ironic) -> None:
    kubectl(project, "delete", "pod", "ironic-1", "--grace-period=0", "--force")
    await_(lambda: "3/3" in kubectl(project, "get", "pod", "ironic-1", "--no-headers"), "ironic-1 ready", 120)
    await_(lambda: ironic("conductors") == CONDUCTORS, "both conductors alive", 90)
    assert len(ironic("nodes")) == 12


def test_the_others_take_over_what_a_conductor_had(project: Project, ironic: Ironic) -> None:
    kubectl(project, "cordon", NODE)  # it has nowhere to come back to
    kubectl(project, "delete", "pod", "ironic-1", "--grace-period=0", "--force")
    await_(lambda: set(ironic("nodes").values()) == {"ironic-0"}, "all nodes taken over", 150)
    assert ironic("conductors") == {"ironic-0": True, "ironic-1": False}
    kubectl(project, "uncordon", NODE)
    await_(lambda: set(ironic("nodes").values()) == set(CONDUCTORS), "nodes shared again", 150)


def test_a_database_that_is_killed_keeps_what_it_had(project: Project, ironic: Ironic) -> None:
    kubectl(project, "delete", "pod", "database-0", "--grace-period=0", "--force")

    def known_again() -> bool:
        try:
            return len(ironic("nodes")) == 12
        except AssertionError:  # 500, as long as there is no database
            return False

    await_(known_again, "nodes known again", 120)
    await_(lambda: ironic("conductors") == CONDUCTORS, "both conductors alive", 90)


def test_a_cluster_on_its_servers(project: Project, ironic: Ironic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Enrolled, deployed by its conductors from discs that they make of ours, lent, installed, and given back."""
    with stack_of(project, CLUSTER):
        told = project.make("up", seconds=300).text
        assert told.index("stack 'hub'") < told.index("stack 'ironic7'") and "up: no changes" in told
        assert_installed(project, ironic, by="cd", told=told)
        project.assert_unchanged("up", "preview", "refresh")
    assert "these stacks have servers of its Ironic:  ironic7" in project.make("down", fails=True).text
    with stack_of(project, CLUSTER):
        monkeypatch.setenv("KEEP_LAB", "1")
        project.make("down")
        assert ironic.states() == [["available", "power off", False]] * SERVERS


def test_prometheus_is_told_of_servers_and_conductors(project: Project) -> None:
    pods = f"/api/v1/namespaces/{SPACE}/pods"

    def measured() -> str:
        return "".join(kubectl(project, "get", "--raw", f"{pods}/{name}:9608/proxy/metrics") for name in CONDUCTORS)

    def complete() -> bool:
        lines = [line for line in measured().splitlines() if not line.startswith("#")]
        servers = all(any(f'node_name="{racks.name(n)}"' in line for line in lines) for n in range(SERVERS))
        return servers and any(line.startswith("ironic_") for line in lines)

    await_(complete, "metrics of all servers and of Ironic", 120)
