"""What the lab's services do for those inside: names, updates, uploads, downloads."""

from __future__ import annotations

import json
import shutil
import ssl
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from lab.errors import LabError
from lab.network import dns
from tests.lab.network.conftest import Lab

pytestmark = pytest.mark.lab

UPDATE = """
import sys, dns.query, dns.tsigkeyring, dns.update, dns.rcode
server, zone, name, secret, verb, owner, kind, data = sys.argv[1:]
keyring = dns.tsigkeyring.from_text({name: secret}) if secret else None
message = dns.update.Update(zone, keyring=keyring, keyalgorithm="hmac-sha256")
message.add(owner, 5, kind, data) if verb == "add" else message.delete(owner, kind, data)
try:
    print(dns.rcode.to_text(dns.query.tcp(message, server, timeout=5).rcode()))
except Exception as error:
    print(type(error).__name__)
"""
LOOK_UP = """
import sys, dns.resolver
resolver = dns.resolver.Resolver(configure=True)
try:
    print(*(str(record) for record in resolver.resolve(sys.argv[1], sys.argv[2])))
except dns.exception.DNSException as error:
    print(type(error).__name__)
"""
UPLOAD = """
import asyncio, sys, asyncssh
host, user, host_key, private_key, path, content = sys.argv[1:]
async def main():
    known = asyncssh.import_known_hosts(f"{host} {host_key}\\n")
    async with asyncssh.connect(host, 22, username=user, known_hosts=known, config=[],
                                client_keys=[asyncssh.import_private_key(private_key)]) as connection:
        async with connection.start_sftp_client() as sftp:
            async with sftp.open(path, "w") as file:
                await file.write(content)
            print(await sftp.getcwd(), *sorted(name for name in await sftp.listdir("/") if name[0] != "."))
try:
    asyncio.run(main())
except (asyncssh.Error, OSError) as error:
    print(type(error).__name__)
"""
FETCH = """
import ssl, sys, urllib.error, urllib.request
url, ca, byte_range = sys.argv[1:]
context = ssl.create_default_context(cafile=ca) if url.startswith("https") else None
request = urllib.request.Request(url, headers={"Range": byte_range} if byte_range else {})
try:
    with urllib.request.urlopen(request, context=context, timeout=5) as answer:
        print(answer.status, answer.read().decode())
except urllib.error.HTTPError as error:
    print(error.code)
    error.close()
except urllib.error.URLError as error:
    print(error.reason.reason)
"""


def update(lab: Lab, verb: str, owner: str, kind: str, data: str, **other: str) -> str:
    dns = lab.facts.dns
    zone, secret = other.get("zone", dns.zone), other.get("secret", dns.tsig.secret)
    return lab.python(UPDATE, dns.server, zone, dns.tsig.name, secret, verb, owner, kind, data).strip()


def look_up(lab: Lab, name: str, kind: str) -> str:
    return lab.python(LOOK_UP, name, kind).strip()


def upload(lab: Lab, path: str, content: str, **other: str) -> str:
    a = lab.facts.artifacts
    user, key = other.get("user", a.user), other.get("private_key", a.private_key)
    return lab.python(UPLOAD, a.host, user, a.host_key, key, path, content).strip()


def fetch(lab: Lab, url: str, byte_range: str = "") -> str:
    return lab.python(FETCH, url, lab.facts.artifacts.ca_path, byte_range).strip()


def test_real_names_are_the_labs(running: Lab) -> None:
    assert look_up(running, "api.equinix.com", "A") == "192.0.2.10"
    assert look_up(running, "metadata.packet.net", "A") == "192.0.2.11"
    assert look_up(running, "sos.lab1.platformequinix.com", "A") == "192.0.2.13"


def test_the_outside_world_does_not_exist(running: Lab) -> None:
    assert look_up(running, "www.example.org", "A") == "NXDOMAIN"


def test_signed_updates_are_served(running: Lab) -> None:
    assert update(running, "add", "api.lab", "A", "198.51.100.3") == "NOERROR"
    assert update(running, "add", "*.apps.lab", "A", "198.51.100.5") == "NOERROR"
    assert update(running, "add", "3", "PTR", "api.lab.facility.test.", zone="100.51.198.in-addr.arpa") == "NOERROR"
    assert look_up(running, "api.lab.facility.test", "A") == "198.51.100.3"
    assert look_up(running, "console.apps.lab.facility.test", "A") == "198.51.100.5"
    assert look_up(running, "3.100.51.198.in-addr.arpa", "PTR") == "api.lab.facility.test."
    assert update(running, "delete", "api.lab", "A", "198.51.100.3") == "NOERROR"
    assert look_up(running, "api.lab.facility.test", "A") == "NXDOMAIN"


def test_a_wrong_key_is_refused(running: Lab) -> None:
    assert update(running, "add", "evil", "A", "198.51.100.9", secret="AAAA") == "PeerBadSignature"
    assert update(running, "add", "evil", "A", "198.51.100.9", secret="") in {"NOTAUTH", "REFUSED"}
    assert look_up(running, "evil.facility.test", "A") == "NXDOMAIN"


def test_the_real_names_take_no_updates(running: Lab) -> None:
    assert update(running, "add", "api", "A", "198.51.100.9", zone="equinix.com") in {"NOTAUTH", "PeerBadKey"}
    assert look_up(running, "api.equinix.com", "A") == "192.0.2.10"


def test_what_is_uploaded_is_served(running: Lab) -> None:
    assert upload(running, "/artifacts/bootstrap.ign", "ignition") == "/ artifacts containers images streams"
    base = running.facts.artifacts
    assert fetch(running, f"{base.base_url}/bootstrap.ign") == "200 ignition"
    assert fetch(running, f"{base.boot_base_url}/bootstrap.ign", "bytes=2-4") == "206 nit"
    requests = running.layout.log("boot").read_text()
    assert "GET https /artifacts/bootstrap.ign 200 8 bytes" in requests


def test_whoever_trusts_the_outside_world_does_not_trust_the_boot_server(running: Lab) -> None:
    """As a machine's image does, which has no authority of a facility's own."""
    url = f"{running.facts.artifacts.base_url}/bootstrap.ign"
    assert running.python(FETCH, url, running.facts.ca_path, "").strip() == "CERTIFICATE_VERIFY_FAILED"


def test_only_files_are_served(running: Lab) -> None:
    upload(running, "/artifacts/.hidden", "half an upload")
    base = running.facts.artifacts.base_url
    assert fetch(running, f"{base}/.hidden") == "404"
    assert fetch(running, f"{base}/") == "404"
    assert fetch(running, f"{base}/../../facts.json") == "404"
    assert fetch(running, f"{base}/%2e%2e/%2e%2e/facts.json") == "404"


def test_uploads_stay_in_their_tree(running: Lab) -> None:
    assert upload(running, "/../../escaped", "x") == "/ artifacts containers escaped images streams"
    (running.layout.boot / "escaped").unlink()
    assert not (running.layout.state / "escaped").exists()


def test_uploads_take_the_right_user_and_key(running: Lab) -> None:
    stranger = ed25519.Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    assert upload(running, "/artifacts/x", "x", private_key=stranger.decode()) == "PermissionDenied"
    assert upload(running, "/artifacts/x", "x", user="root") == "PermissionDenied"


def test_the_stream_document_names_files_with_their_hashes(running: Lab) -> None:
    code = """
import hashlib, json, sys, urllib.request
get = lambda url: urllib.request.urlopen(url, timeout=5).read()
pxe = json.loads(get(sys.argv[1]))["architectures"]["x86_64"]["artifacts"]["metal"]["formats"]["pxe"]
matches = lambda each: hashlib.sha256(get(each["location"])).hexdigest() == each["sha256"]
print(json.dumps({name: matches(each) for name, each in pxe.items()}))
"""
    answer = running.python(code, running.facts.boot.stream_url)
    assert json.loads(answer) == {"kernel": True, "initramfs": True, "rootfs": True}


def test_without_knot_there_is_no_lab(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name, **_: None)
    with pytest.raises(LabError, match=r"Knot, is not installed: install it \(on Debian: apt-get install knot\)"):
        dns.knot()


def test_the_host_sees_none_of_it(running: Lab) -> None:
    assert "192.0.2.53" in running.run("cat", "/etc/resolv.conf").stdout
    assert "192.0.2.53" not in Path("/etc/resolv.conf").read_text()
    assert not Path("/sys/class/net/facility0").exists()
    with pytest.raises((urllib.error.URLError, TimeoutError)):
        urllib.request.urlopen("https://192.0.2.12/", timeout=0.3, context=ssl.create_default_context())
