"""The hub's images, its DNS for Services and its volumes, as pods use them."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography import x509

from lab.hub import images, objects
from lab.hub.layout import HubLayout
from lab.hub.recipe import Recipe
from lab.network import certificates, plan
from tests.lab.hub.hub import FOUND, ask, logs
from tests.lab.network.conftest import Lab
from tests.lab.waiting import until

pytestmark = [
    pytest.mark.libvirt,
    pytest.mark.skipif(isinstance(FOUND, str), reason=f"no hub here: {FOUND}"),
]

_PODS = "/api/v1/namespaces/default/pods"
_RIGHTS = {"readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}, "allowPrivilegeEscalation": False}
"""None."""
_CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"


def start(lab: Lab, name: str, recipe: Recipe, **more: Any) -> None:
    """Start a pod as its image's own user. `securityContext` is the pod's, `rights` is the container's."""
    of_pod = {key: more.pop(key) for key in ("volumes", "securityContext", "initContainers") if key in more}
    if "rights" in more:
        more["securityContext"] = more.pop("rights")
    container = {"name": name, "image": recipe.reference, **more}
    spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 5, "containers": [container], **of_pod}
    metadata = {"name": name, "labels": {"app": name}}
    ask(lab, "POST", _PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


def run(lab: Lab, name: str, recipe: Recipe, script: str, **more: Any) -> str:
    """Run a script in a pod to its end, which has to be a good one; returns what it printed."""
    start(lab, name, recipe, command=["sh", "-ec", script], **more)
    until(lambda: phase(lab, name) in {"Succeeded", "Failed"}, 90)
    assert phase(lab, name) == "Succeeded", logs(lab, name)
    return logs(lab, name)


def phase(lab: Lab, name: str) -> str:
    return ask(lab, "GET", f"{_PODS}/{name}")["status"]["phase"]


def is_ready(lab: Lab, name: str) -> bool:
    found = ask(lab, "GET", f"{_PODS}/{name}")["status"]
    assert found["phase"] not in {"Failed", "Succeeded"}, logs(lab, name)
    return any(each["type"] == "Ready" and each["status"] == "True" for each in found.get("conditions", []))


def remove(lab: Lab, path: str, seconds: float = 60) -> None:
    """Remove an object, and wait until it is gone."""
    name = path.rpartition("/")[2]
    ask(lab, "DELETE", path)
    until(
        lambda: name not in {each["metadata"]["name"] for each in ask(lab, "GET", path.rpartition("/")[0])["items"]},
        seconds,
    )


def secret(name: str, pair: trustme.LeafCert) -> dict[str, Any]:
    data = {"tls.crt": pair.cert_chain_pems[0].bytes(), "tls.key": pair.private_key_pem.bytes()}
    encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": encoded}


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def serve(lab: Lab, name: str, port: int, node_port: int | None = None) -> None:
    """A Service of the pods with the same name."""
    ports = [{"port": port, **({"nodePort": node_port} if node_port else {})}]
    spec = {"selector": {"app": name}, "ports": ports, "type": "NodePort" if node_port else "ClusterIP"}
    document = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}
    ask(lab, "POST", "/api/v1/namespaces/default/services", document)


def claim(lab: Lab, name: str) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    metadata = {"name": name}
    ask(
        lab,
        "POST",
        _CLAIMS,
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec},
    )


def test_references_can_be_read_from_a_file(hub: HubLayout) -> None:
    """A stack's configuration names images by them."""
    found = json.loads(hub.references.read_text())
    assert found["ironic"] == images.IRONIC.reference
    assert set(found) == {recipe.name for recipe in images.ALL}


def test_pods_resolve_services_and_names_of_the_facility(lab: Lab, hub: HubLayout) -> None:
    """By the search list that the kubelet gives them, and through CoreDNS to the lab's DNS server."""
    code = "import socket, sys; print(*map(socket.gethostbyname, sys.argv[1:]))"
    names = f"kubernetes.default.svc kubernetes {plan.BOOT_NAME}"
    script = f"cat /etc/resolv.conf; python3 -c '{code}' {names}; ! nslookup no.such.test"
    told = run(lab, "names", images.TOOLS, script)
    assert f"nameserver {objects.DNS_SERVICE}" in told
    assert f"10.96.0.1 10.96.0.1 {plan.BOOT}" in told
    assert "NXDOMAIN" in told


_SQL = """\
CREATE DATABASE IF NOT EXISTS ironic;
CREATE OR REPLACE USER ironic@'%' IDENTIFIED BY 'kept secret' REQUIRE SSL;
GRANT ALL ON ironic.* TO ironic@'%';
"""


@pytest.mark.nightly
def test_mariadb_starts_on_an_empty_volume_answers_over_tls_and_keeps_what_it_has(lab: Lab, hub: HubLayout) -> None:
    """A claim is bound to a volume; the volume outlives the pod, and its directory goes with the claim."""
    authority = certificates.authority("databases")
    ask(
        lab,
        "POST",
        "/api/v1/namespaces/default/secrets",
        secret("database-tls", authority.issue_cert("database.default.svc")),
    )
    authority_pem = authority.cert_pem.bytes().decode()
    ask(
        lab,
        "POST",
        "/api/v1/namespaces/default/configmaps",
        config_map("database", **{"init.sql": _SQL, "ca.crt": authority_pem}),
    )
    claim(lab, "database")
    serve(lab, "database", 3306)
    mounts = {
        "data": ("/var/lib/mysql", {"persistentVolumeClaim": {"claimName": "database"}}),
        "run": ("/run/mysqld", {"emptyDir": {}}),
        "tmp": ("/tmp", {"emptyDir": {}}),
        "tls": ("/certs", {"secret": {"secretName": "database-tls"}}),
        "config": ("/etc/database", {"configMap": {"name": "database"}}),
    }
    database: dict[str, Any] = {
        "args": [
            "--ssl-cert=/certs/tls.crt",
            "--ssl-key=/certs/tls.key",
            "--require-secure-transport=ON",
            "--init-file=/etc/database/init.sql",
        ],
        "readinessProbe": {"exec": {"command": ["mariadb-admin", "ping"]}, "periodSeconds": 1},
        "volumeMounts": [{"name": name, "mountPath": path} for name, (path, _) in mounts.items()],
        "volumes": [{"name": name, **source} for name, (_, source) in mounts.items()],
        "securityContext": {"runAsNonRoot": True, "fsGroup": images.MARIADB_USER},
        "rights": _RIGHTS,
    }
    start(lab, "database", images.MARIADB, **database)
    until(lambda: is_ready(lab, "database"), 90)
    volume = ask(lab, "GET", f"{_CLAIMS}/database")["spec"]["volumeName"]
    (directory,) = hub.volumes.glob(f"{volume}_*")
    assert (directory / "data" / "ironic").is_dir()

    client = (
        "mariadb -h database.default.svc -u ironic --ssl-ca=/etc/database/ca.crt --ssl-verify-server-cert ironic -e"
    )
    of_client: dict[str, Any] = {
        "env": [{"name": "MYSQL_PWD", "value": "kept secret"}],
        "volumeMounts": [{"name": "config", "mountPath": "/etc/database"}],
        "volumes": [{"name": "config", "configMap": {"name": "database"}}],
    }
    fill = "CREATE TABLE t (n INT); INSERT INTO t VALUES (42); SHOW STATUS LIKE 'Ssl_version'"
    script = f"until {client} 'SELECT 1'; do sleep 1; done; {client} \"{fill}\";"
    script += "! mariadb --skip-ssl -h database -u ironic ironic -e ''"
    told = run(lab, "client-1", images.MARIADB, script, **of_client)
    assert "TLSv1.3" in told
    assert "Access denied for user 'ironic'" in told

    remove(lab, f"{_PODS}/database")
    start(lab, "database", images.MARIADB, **database)
    until(lambda: is_ready(lab, "database"), 60)
    # kube-proxy may learn a little later where the new pod is.
    script = f"until {client} 'SELECT n FROM t'; do sleep 1; done"
    assert "42" in run(lab, "client-2", images.MARIADB, script, **of_client)

    remove(lab, f"{_PODS}/database")
    ask(lab, "DELETE", f"{_CLAIMS}/database")
    until(lambda: not directory.exists(), 60)


_IRONIC = """\
[DEFAULT]
auth_strategy = noauth
rpc_transport = none
enabled_hardware_types = ipmi,redfish
enabled_boot_interfaces = ipxe,redfish-virtual-media
enabled_deploy_interfaces = direct,ramdisk
enabled_inspect_interfaces = agent,no-inspect
enabled_management_interfaces = ipmitool,redfish
enabled_power_interfaces = ipmitool,redfish
grub_config_path = boot/grub/grub.cfg
[conductor]
bootloader = file:///usr/lib/ironic/esp.img
[database]
connection = sqlite:////var/lib/ironic/ironic.sqlite
[deploy]
http_root = /shared/html
http_url = https://boot.example.test
[pxe]
tftp_root = /shared/tftp
[dhcp]
dhcp_provider = none
[oslo_concurrency]
lock_path = /var/lib/ironic/locks
"""

_DISC = """
import subprocess
from ironic.common import images, service
service.prepare_command(["ironic"])
for name in ("kernel", "ramdisk"):
    open("/shared/" + name, "w").write(name)
images.create_esp_image_for_uefi("/shared/disc.iso", "/shared/kernel", "/shared/ramdisk", kernel_cmd_line="quiet",
                                 esp_image="/usr/lib/ironic/esp.img")
images.create_vfat_image("/shared/floppy.img", parameters={"key": "value"})
print(subprocess.check_output(["isoinfo", "-i", "/shared/disc.iso", "-R", "-f"], text=True))
print(subprocess.check_output(["isoinfo", "-i", "/shared/disc.iso", "-R", "-x", "/boot/grub/grub.cfg"], text=True))
print(subprocess.check_output(["mtype", "-i", "/shared/floppy.img", "::parameters.txt"], text=True))
"""


@pytest.mark.nightly
def test_ironic_answers_with_a_database_in_a_file(lab: Lab, hub: HubLayout) -> None:
    """As one process with its API, as a user without rights; the programs that it calls are there."""
    ask(
        lab,
        "POST",
        "/api/v1/namespaces/default/configmaps",
        config_map("ironic", **{"ironic.conf": _IRONIC, "disc.py": _DISC}),
    )
    mounts = [
        {"name": "config", "mountPath": "/etc/ironic"},
        {"name": "state", "mountPath": "/var/lib/ironic"},
        {"name": "shared", "mountPath": "/shared"},
        {"name": "tmp", "mountPath": "/tmp"},
    ]
    of_pod: dict[str, Any] = {
        "volumes": [
            {"name": "config", "configMap": {"name": "ironic"}},
            *({"name": name, "emptyDir": {}} for name in ("state", "shared", "tmp")),
        ],
        "securityContext": {"runAsNonRoot": True, "fsGroup": images.IRONIC_USER},
    }
    sync = {
        "name": "schema",
        "image": images.IRONIC.reference,
        "command": ["sh", "-ec", "mkdir /shared/html /shared/tftp; ironic-dbsync create_schema"],
        "volumeMounts": mounts,
        "securityContext": _RIGHTS,
    }
    serve(lab, "ironic", 6385, 30385)
    start(
        lab,
        "ironic",
        images.IRONIC,
        volumeMounts=mounts,
        readinessProbe={"httpGet": {"path": "/v1", "port": 6385}, "periodSeconds": 1},
        initContainers=[sync],
        rights=_RIGHTS,
        **of_pod,
    )
    until(lambda: is_ready(lab, "ironic"), 120)
    ask_api = "import httpx, sys; print(httpx.get(sys.argv[1], trust_env=False).text)"
    drivers = json.loads(lab.python(ask_api, f"http://{plan.HUB}:30385/v1/drivers"))["drivers"]
    assert {each["name"] for each in drivers} == {"ipmi", "redfish"}
    until(lambda: "ironic" in logs(lab, "ironic"))

    commands = (
        "ironic --version",
        "ironic-status --help",
        "ipmitool -V",
        "qemu-img --version",
        "ip -V",
        "mkisofs -version",
    )
    script = "; ".join((*commands, "ls /usr/lib/ipxe", "python3 /etc/ironic/disc.py"))
    told = run(lab, "ironic-tools", images.IRONIC, script, volumeMounts=mounts, rights=_RIGHTS, **of_pod)
    assert "39.0.0" in told
    for part in ("snponly.efi", "undionly.kpxe", "/boot/grub/grub.cfg", "quiet", "key=value"):
        assert part in told


def test_a_renewed_certificate_is_served_without_a_restart(lab: Lab, hub: HubLayout) -> None:
    """The kubelet brings a changed Secret into the pod within a minute or two; nginx then reads it."""
    authority = certificates.authority("files")
    issued = [authority.issue_cert("httpd.default.svc", plan.HUB) for _ in range(2)]
    secrets = "/api/v1/namespaces/default/secrets"
    ask(lab, "POST", secrets, secret("files-tls", issued[0]))
    mounts = {
        "tls": ("/certs", {"secret": {"secretName": "files-tls"}}),
        "files": ("/shared", {"emptyDir": {}}),
        "tmp": ("/tmp", {"emptyDir": {}}),
    }
    serve(lab, "httpd", 8443, 30443)
    of_files = {"name": "shared", "image": images.TOOLS.reference, "command": ["sh", "-ec"]}
    of_files["args"] = ["mkdir /shared/html; echo a file > /shared/html/file"]
    start(
        lab,
        "httpd",
        images.HTTPD,
        volumeMounts=[{"name": name, "mountPath": path} for name, (path, _) in mounts.items()],
        volumes=[{"name": name, **source} for name, (_, source) in mounts.items()],
        readinessProbe={"tcpSocket": {"port": 8443}, "periodSeconds": 1},
        securityContext={"runAsNonRoot": True, "fsGroup": images.HTTPD_USER},
        rights=_RIGHTS,
        initContainers=[{**of_files, "volumeMounts": [{"name": "files", "mountPath": "/shared"}]}],
    )
    until(lambda: is_ready(lab, "httpd"), 60)
    place = lab.layout.state / "files-ca.crt"
    place.write_bytes(authority.cert_pem.bytes())
    assert fetch(lab, place) == (serial(issued[0]), "a file")
    ask(lab, "PUT", f"{secrets}/files-tls", secret("files-tls", issued[1]))
    until(lambda: fetch(lab, place) == (serial(issued[1]), "a file"), 150)
    assert ask(lab, "GET", f"{_PODS}/httpd")["status"]["containerStatuses"][0]["restartCount"] == 0


_FETCH = """
import json, socket, ssl, sys
ca, host, port = sys.argv[1:]
context = ssl.create_default_context(cafile=ca)
with context.wrap_socket(socket.create_connection((host, int(port)), 5), server_hostname=host) as way:
    way.sendall(b"GET /file HTTP/1.0\\r\\n\\r\\n")
    body = b"".join(iter(lambda: way.recv(4096), b"")).partition(b"\\r\\n\\r\\n")[2]
    print(json.dumps([int(way.getpeercert()["serialNumber"], 16), body.decode().strip()]))
"""


def fetch(lab: Lab, authority: Path) -> tuple[int, str]:
    """The serial number of the certificate that the file server shows, and the file."""
    number, text = json.loads(lab.python(_FETCH, str(authority), plan.HUB, "30443"))
    return number, text


def serial(pair: trustme.LeafCert) -> int:
    return x509.load_pem_x509_certificate(pair.cert_chain_pems[0].bytes()).serial_number


def test_dnsmasq_serves_boot_files(lab: Lab, hub: HubLayout) -> None:
    """By TFTP, with the rights that it needs and no others."""
    script = (
        "mkdir /tmp/t; echo boot > /tmp/t/file; dnsmasq --port=0 --user=root --enable-tftp --tftp-root=/tmp/t;"
        "tftp -g -r file -l /tmp/got 127.0.0.1; cat /tmp/got"
    )
    capabilities = {"drop": ["ALL"], "add": ["NET_ADMIN", "NET_BIND_SERVICE", "NET_RAW", "SETGID", "SETUID"]}
    assert "boot" in run(lab, "tftp", images.DNSMASQ, script, rights={"capabilities": capabilities})
