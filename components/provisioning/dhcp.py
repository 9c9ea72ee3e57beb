"""dnsmasq: DHCP and TFTP on the provisioning network. The only part that runs in the nodes' own network.

Firmware gets iPXE, and iPXE gets a script that asks all conductors for the boot files of its server. Ironic's own
`boot.ipxe` would ask only one conductor, and would reset an unknown server after three minutes.
"""

from __future__ import annotations

from metal_ipi.components.provisioning import objects
from metal_ipi.components.provisioning.configuration import BOOT_FILES, files_url
from metal_ipi.components.provisioning.contract import Dhcp, IronicArgs
from metal_ipi.components.provisioning.objects import Object

NAME = "dhcp"
_IPXE = "/usr/lib/ipxe"
_SCRIPT = "boot.ipxe"


def dnsmasq_conf(dhcp: Dhcp) -> str:
    """dnsmasq's configuration: addresses, and iPXE for firmware without it."""
    lines = [
        "port=0",  # no DNS
        "keep-in-foreground",
        "log-facility=-",
        "log-dhcp",
        f"interface={dhcp.interface}",
        "bind-dynamic",
        *(f"dhcp-range={each},{dhcp.lease_seconds}s" for each in dhcp.ranges),
        f"dhcp-option=option:router{',' + dhcp.gateway if dhcp.gateway else ''}",
        *([f"dhcp-option=option:dns-server,{','.join(dhcp.nameservers)}"] if dhcp.nameservers else []),
        "dhcp-leasefile=/var/lib/dhcp/leases",
        "pid-file=/run/dnsmasq.pid",  # /var/run belongs to the image and is read-only
        "enable-tftp",
        f"tftp-root={_IPXE}",
        "dhcp-match=set:ipxe,175",
        "dhcp-match=set:efi,option:client-arch,7",
        "dhcp-match=set:efi,option:client-arch,9",
        "dhcp-match=set:efi,option:client-arch,11",
        "dhcp-boot=tag:!ipxe,tag:efi,snponly.efi",
        "dhcp-boot=tag:!ipxe,tag:!efi,undionly.kpxe",
        f"dhcp-boot=tag:ipxe,{_SCRIPT}",
        "dhcp-option=tag:ipxe,encap:175,176,1b",  # no-pxedhcp: do not wait for another server
    ]
    return "\n".join(lines) + "\n"


def boot_script(args: IronicArgs) -> str:
    """The script that iPXE runs. Conductors name boot files after MAC addresses (ironic/common/pxe_utils.py)."""
    asked = "".join(
        f"chain {files_url(args, number)}/{BOOT_FILES}/${{net${{n}}/mac:hexhyp}} ||\n"
        for number in range(args.conductors)
    )
    return (
        "#!ipxe\n"
        "# A server that no conductor has boot files for goes on to its next device: the disk.\n"
        f"set n:int32 -1\n:next\ninc n\nisset ${{net${{n}}/mac}} || exit\n{asked}goto next\n"
    )


def config_map(args: IronicArgs, dhcp: Dhcp) -> Object:
    """The ConfigMap with dnsmasq's configuration."""
    return objects.manifest("ConfigMap", NAME, args.namespace, NAME, data=_files(args, dhcp))


def _files(args: IronicArgs, dhcp: Dhcp) -> dict[str, str]:
    return {"dnsmasq.conf": dnsmasq_conf(dhcp), _SCRIPT: boot_script(args)}


def deployment(args: IronicArgs, dhcp: Dhcp) -> Object:
    """A Deployment of one server: two servers would give the same address to two machines."""
    assert args.images.dhcp is not None, "checked before"
    container = objects.container(
        NAME,
        args.images.dhcp,
        ["dnsmasq", "--conf-file=/etc/dhcp/dnsmasq.conf", "--user=root"],
        [
            objects.mount("config", "/etc/dhcp", read_only=True),
            objects.file("config", f"{_IPXE}/{_SCRIPT}"),
            objects.mount("leases", "/var/lib/dhcp"),
            objects.mount("run", "/run"),
        ],
    )
    container["securityContext"] = {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "runAsUser": 0,
        "runAsNonRoot": False,
        "capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN", "NET_RAW", "NET_BIND_SERVICE", "SETGID", "SETUID"]},
    }
    volumes = [objects.of_map("config", NAME), objects.empty("leases"), objects.empty("run")]
    template = objects.pod(
        NAME,
        {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet", "containers": [container], "volumes": volumes},
        {"metal-ipi/made-of": objects.digest(*_files(args, dhcp).values())},
    )
    return objects.manifest(
        "Deployment",
        NAME,
        args.namespace,
        NAME,
        spec={"replicas": 1, "strategy": {"type": "Recreate"}, **objects.pods_of(NAME, template)},
    )
