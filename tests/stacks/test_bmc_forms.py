"""Values of a rack that end up in requests, in libvirt's descriptions and on command lines have a form."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import SecretStr

from metal_ipi.stacks.platforms.redfish.settings import Redfish
from tests.stacks.rack import SECRET, rack_problems, rack_settings

VM = {"type": "local-vm", "address": "192.0.2.9", "mac": "52:54:00:00:00:09", "bridge": "br0"}


def _vm(**changes: Any) -> dict[str, Any]:
    return {"platform__bootstrap": {**VM, **changes}}


def _bmc(**changes: Any) -> dict[str, Any]:
    return {"platform__servers__0__bmc": {"address": "https://10.0.0.14", **changes}}


REFUSED: list[tuple[dict[str, Any], str]] = [
    *(
        (_bmc(address=address), "servers[0].bmc.address")
        for address in (
            "https://10.0.0.1:0",
            "https://10.0.0.1:65536",
            "https://10.0.0.256",
            "https://10.0.0",
            "https://-oProxyCommand",
            "https://a..b",
            "https://[10.0.0.1]",
            "https://[fe80::1",
            "https://a$(id)",
            "https://user@10.0.0.1",
            "https://10.0.0.1\n",
            "https://" + "a" * 64,
        )
    ),
    *(
        ({"platform__bmc__username": name}, "bmc.username")
        for name in ("ad:min", "admin\n", " admin", "ad\x00min", "a" * 129)
    ),
    *(({"platform__bmc__password": word}, "bmc.password") for word in (f"{SECRET}\n", f"{SECRET}\x00")),
    *(
        (_bmc(systemId=name), "servers[0].bmc.systemId")
        for name in ("", "..", "a/b", "../Managers/1", "/redfish/v1/Managers/1", "1?$expand=.", "1 2", "-1", "1\n")
    ),
    *(({"platform__servers__0__mac": mac}, "servers[0].mac") for mac in ("00:00:00:00:00:00", "52:54:00:00:00:0a\n")),
    *(
        ({"platform__servers__0__address": address}, "servers[0].address")
        for address in ("224.0.0.1", "0.0.0.0", "127.0.0.1", "255.255.255.255", "192.0.2.14\n")
    ),
    ({"platform__servers__0__privateAddress": "239.1.1.1"}, "servers[0].privateAddress"),
    ({"platform__nameservers": ["127.0.0.53"]}, "nameservers[0]"),
    *(
        ({"platform__bmc__bootImage": url}, "bmc.bootImage")
        for url in (
            "http://192.0.2.2:99999/x.iso",
            "http://192.0.2.300/x.iso",
            "http://a b/x.iso",
            "http://host/x.iso\n",
            "http://host/$'x'",
            "http://host/x\x1b.iso",
            "http://host/" + "x" * 1100,
        )
    ),
    *(
        ({"platform__interface": name, "platform__networkBoot": "static"}, "interface")
        for name in (".", "..", "-i", "eno1\n", "a" * 16, "eno1:none")
    ),
    *((_vm(bridge=name), "bootstrap.bridge") for name in ("..", "-br0", "br0/x", "br'0")),
    *(
        (_vm(bootImage=path), "bootstrap.bootImage")
        for path in ("/", "//", "/srv/", "/srv/../etc/shadow", "/srv/./x", "/srv/x\n", "/srv\x00x", "/" + "a" * 1100)
    ),
    *(
        (_vm(uri=uri), "bootstrap.uri")
        for uri in (
            "qemu+ssh://-oProxyCommand=id/system",
            "qemu+ssh://-l@host/system",
            "qemu+ssh://root@host:0/system",
            "qemu+ssh://root@ho$st/system",
            "qemu+ext://host/system?command=/tmp/x",
            "qemu+ssh://root@host/system?command=/tmp/x",
            "qemu+ssh://root@host/system?no_tty=1&netcat=/tmp/x",
            "qemu+ssh://root@host/system?no_tty=1;NetCat=/tmp/x",
            "qemu+ssh://root@host/system?net%63at=/tmp/x",
            "qemu:///system\n",
            "qemu:///../system",
        )
    ),
]


@pytest.mark.parametrize(("changes", "path"), REFUSED)
def test_a_value_without_the_form_of_its_place_is_refused(changes: dict[str, Any], path: str) -> None:
    (problem,) = rack_problems(**changes)
    assert problem.path == f"metal-ipi:platform.{path}"
    assert problem.why and problem.remedy


@pytest.mark.parametrize(
    "changes",
    [
        *(
            _bmc(address=address)
            for address in (
                "https://bmc-1.example.com",
                "https://10.0.0.14:8443/",
                "https://[2001:db8::1]",
                "https://[2001:db8::1]:443",
                "https://bmc14",
            )
        ),
        *({"platform__bmc__username": name} for name in ("root", "EXAMPLE\\admin", "admin@example.com", "Ad Min")),
        {"platform__bmc__password": "pä$$ wörd:'\""},
        *(
            _bmc(systemId=name)
            for name in ("1", "System.Embedded.1", "437XR1138R2", "/redfish/v1/Systems/Self", "urn:uuid:1")
        ),
        *(
            {"platform__bmc__bootImage": url}
            for url in ("http://[2001:db8::2]:8080/ipxe.iso", "https://h/a%20b.iso?x=1")
        ),
        *({"platform__interface": name, "platform__networkBoot": "static"} for name in ("enp1s0f0np0", "bond0.10")),
        *(_vm(bridge=name) for name in ("br-lan", "virbr0", "vmbr0.100")),
        _vm(bootImage="/var/lib/libvirt/images/my ipxe.iso"),
        *(
            _vm(uri=uri)
            for uri in (
                "qemu:///session",
                "qemu+ssh://root@kvm.example.com:22/system?no_tty=1",
                "qemu+ssh://kvm/system?keyfile=/root/.ssh/kvm",
                "qemu+libssh2://ipi@192.0.2.3/session",
                "qemu+tls://[2001:db8::3]/system",
                "qemu+unix:///system?socket=/run/libvirt/virtqemud-sock",
            )
        ),
    ],
)
def test_what_sites_really_have_is_taken_as_it_is(changes: dict[str, Any]) -> None:
    platform = rack_settings(**changes).platform
    assert isinstance(platform, Redfish)
    taken = platform.model_dump(by_alias=True)
    for path, value in changes.items():
        found: Any = {"platform": taken}
        for part in path.split("__"):
            found = found[int(part) if part.isdigit() else part]
        for name, wanted in (value if isinstance(value, dict) else {"": value}).items():
            got = found[name] if name else found
            shown = got.get_secret_value() if isinstance(got, SecretStr) else got
            assert shown == (wanted.rstrip("/") if name == "address" else wanted)
