"""The Ignition configs we render, compared with golden files and tried on the real validator."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess

import pytest

from metal_ipi.components.boot.host_keys import host_key
from metal_ipi.components.boot.ignition import (
    USERDATA_LIMIT,
    IgnitionError,
    NodeFile,
    Source,
    certificate_authorities,
    data_url,
    identity,
    own_pointer,
    pointer,
)
from tests import golden

_DOMAIN = "lab.facility.test"
_SEED = base64.b64encode(bytes(range(32))).decode()
_HASH = "sha512-" + "0123456789abcdef" * 8
_CA = "data:text/plain;charset=utf-8;base64,LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t"
_KEYS = ("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPDx cluster", "ssh-rsa AAAAB3NzaC1yc2E someone")
_FIRST = {
    "bootstrap": Source(url="https://boot.facility.test/artifacts/x/bootstrap.ign", hash=_HASH),
    "control-plane-0": Source(url=f"https://api-int.{_DOMAIN}:22623/config/master"),
    "worker-0": Source(url=f"https://api-int.{_DOMAIN}:22623/config/worker"),
}
_VALIDATORS = ("ignition-validate", "/usr/lib/dracut/modules.d/30ignition/ignition-validate")


def _pointer(node: str) -> str:
    return pointer(
        hostname=f"lab-{node}.{_DOMAIN}",
        platform_id="packet",
        merge=[_FIRST[node], Source(url=f"https://boot.facility.test/artifacts/x/lab-{node}.ign", hash=_HASH)],
        certificate_authorities=[_CA],
        authorized_keys=_KEYS,
    )


def _identity() -> str:
    key = host_key(_SEED, f"worker-0.{_DOMAIN}")
    return identity(key)


@pytest.mark.parametrize("node", list(_FIRST))
def test_pointers(node: str) -> None:
    golden.check_json(f"ignition-{node.removesuffix('-0')}.json", _pointer(node))


def test_afterburn_runs_only_where_it_knows_the_platform() -> None:
    def units(platform: str) -> list[str]:
        text = pointer(
            hostname="n.test", platform_id=platform, merge=[], certificate_authorities=[], authorized_keys=[]
        )
        return [unit["name"] for unit in json.loads(text)["systemd"]["units"]]

    assert units("packet") == ["metal-ipi-metadata.service"]
    assert units("metal") == []


def test_identity() -> None:
    golden.check_json("ignition-identity.json", _identity())


@pytest.mark.parametrize("name", [*_FIRST, "identity"])
def test_the_real_validator_takes_them(name: str) -> None:
    program = next(filter(None, map(shutil.which, _VALIDATORS)), None)
    if program is None:
        pytest.skip("ignition-validate is not installed (Debian package ignition)")
    text = _identity() if name == "identity" else _pointer(name)
    result = subprocess.run([program, "-"], input=text, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (Source(url="http://boot/x.ign"), "only https: and data: sources"),
        (Source(url="https://boot/x.ign", hash="sha512-00"), "a hash is neither"),
        (Source(url="https://boot/x.ign", hash=_HASH + "\n"), "neither 'sha512-' nor 'sha256-'"),
    ],
)
def test_what_the_specification_or_we_refuse(source: Source, message: str) -> None:
    with pytest.raises(IgnitionError) as caught:
        pointer(hostname="n.test", platform_id="packet", merge=[source], certificate_authorities=[], authorized_keys=[])
    assert message in str(caught.value)


def test_a_message_shows_no_content() -> None:
    with pytest.raises(IgnitionError) as caught:
        pointer(
            hostname="n.test",
            platform_id="packet",
            merge=[Source(url="ftp://user:hunter2@boot/x")],
            certificate_authorities=[],
            authorized_keys=[],
        )
    assert "hunter2" not in str(caught.value)


def test_userdata_that_metal_would_not_take_is_refused() -> None:
    with pytest.raises(IgnitionError, match=rf"the userdata of n.test has \d+ bytes, more than {USERDATA_LIMIT}"):
        pointer(
            hostname="n.test",
            platform_id="packet",
            merge=[Source(url=data_url("x" * USERDATA_LIMIT))],
            certificate_authorities=[],
            authorized_keys=[],
        )


def test_of_a_shared_pointer_only_what_is_userdata_is_measured() -> None:
    large = data_url("x" * USERDATA_LIMIT)
    shared = pointer(
        hostname=None, platform_id="packet", merge=[Source(url=large)], certificate_authorities=[], authorized_keys=[]
    )
    assert len(shared) > USERDATA_LIMIT
    source = Source(url="https://boot.facility.test/x", hash=_HASH)
    with pytest.raises(IgnitionError, match=rf"the userdata of n.test has \d+ bytes, more than {USERDATA_LIMIT}"):
        own_pointer(
            hostname="n.test",
            shared=source,
            identity=source,
            certificate_authorities=[],
            files=[NodeFile(path="/etc/x", text="x" * USERDATA_LIMIT, mode=0o644)],
        )


def test_authorities_are_taken_from_the_installers_pointer() -> None:
    tree = {"ignition": {"security": {"tls": {"certificateAuthorities": [{"source": "data:,A"}, {"source": _CA}]}}}}
    assert certificate_authorities(json.dumps(tree)) == ("data:,A", _CA)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"ignition":{}}', '{"ignition":{"security":null}}'])
def test_a_pointer_without_authorities_is_an_error(text: str) -> None:
    with pytest.raises(IgnitionError, match="the installer's pointer config names no certificate authority"):
        certificate_authorities(text)
