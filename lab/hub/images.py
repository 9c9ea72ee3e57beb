"""The hub's container images, by what they are made of. How they are made: lab.hub.recipe and lab.hub.layers.

Programs run without rights of their own: where an image has a user, volumes have to be writable for the group of the
same id (`fsGroup`). What the programs write outside of volumes is in /tmp and /run.
"""

from __future__ import annotations

import platform
from pathlib import Path

from lab import coredns, kube_vip, local_path
from lab.hub.layers import BootLoader, Debian, DebianFiles, Files, Program, Wheels
from lab.hub.recipe import Recipe

_FILES = Path(__file__).with_name("image_files")
REQUIREMENTS = Path(__file__).parents[1] / "ironic" / "requirements.txt"

IRONIC_USER = 997
MARIADB_USER = 998
HTTPD_USER = 996

_BUSYBOX = "busybox-static"
_SMALL = ("base-files", _BUSYBOX, "coreutils", "dash")
"""What every root file system has. busybox's shell would run its own programs instead of those on PATH, and its `dd`
does not know KiB, which Ironic says."""
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
LANGUAGE = ("LANG", "C.UTF-8")


def basis(accounts: dict[str, int], *, volumes: tuple[str, ...] = (), **texts: str) -> Files:
    """The layer that every image has, with the accounts of this image; volumes are mounted on empty directories."""
    known = {"root": 0, **accounts, "nobody": 65534}
    shell = "/bin/sh"
    return Files(
        texts={
            "etc/passwd": "".join(f"{name}:x:{number}:{number}::/tmp:{shell}\n" for name, number in known.items()),
            "etc/group": "".join(f"{name}:x:{number}:\n" for name, number in known.items()),
            "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n",
            **texts,
        },
        directories={"tmp": 0o1777, "run": 0o1777, **dict.fromkeys(volumes, 0o755)},
    )


def _script(name: str) -> dict[str, str]:
    return {f"usr/local/bin/{name}": (_FILES / name).read_text()}


PAUSE = Recipe(
    name="pause",
    layers=(DebianFiles((_BUSYBOX,), ("usr/bin/busybox",)),),
    entrypoint=("/usr/bin/busybox", "sleep", "infinity"),
)
"""The image that holds a pod's network namespace. It has a shell, too, and is used for pods that test the hub."""

PYTHON = Debian((*_SMALL, "ca-certificates", "curl", "openssl", "python3"))

TOOLS = Recipe(
    name="tools",
    layers=(PYTHON, basis({"tools": 1000})),
    entrypoint=("/bin/sh",),
    environment=(("PATH", PATH), LANGUAGE),
    user=1000,
)
"""curl, openssl, Python and busybox, for programs that are mounted into it."""

_LOADERS = DebianFiles(("ipxe",), ("usr/lib/ipxe/snponly.efi", "usr/lib/ipxe/undionly.kpxe"))
_ESP = "usr/lib/ironic/esp.img"
_FROM_DISC = "search --file --set=root /boot/grub/grub.cfg\nconfigfile /boot/grub/grub.cfg\n"

IRONIC = Recipe(
    name="ironic",
    layers=(
        PYTHON,
        Debian(
            ("dosfstools", "file", "genisoimage", "iproute2", "ipmitool", "mtools", "qemu-utils", "util-linux", "zstd")
        ),
        _LOADERS,
        *((BootLoader(_ESP, _FROM_DISC),) if platform.machine() == "x86_64" else ()),
        Wheels(REQUIREMENTS, "opt/ironic"),
        basis({"ironic": IRONIC_USER}, volumes=("etc/ironic", "shared", "var/lib/ironic")),
    ),
    entrypoint=("ironic",),
    environment=(("PATH", f"/opt/ironic/bin:{PATH}"), LANGUAGE),
    user=IRONIC_USER,
    directory="/var/lib/ironic",
)
"""Ironic and what it calls. Its configuration is mounted as /etc/ironic/ironic.conf.

`ironic` is its API and conductor in one process; `ironic-dbsync`, `ironic-status` and the others are on PATH, too. iPXE
is below /usr/lib/ipxe. For [conductor]bootloader there is file:///usr/lib/ironic/esp.img (on x86_64): its GRUB reads
/boot/grub/grub.cfg of the disc, which [DEFAULT]grub_config_path has to name without the first slash.
"""

MARIADB = Recipe(
    name="mariadb",
    layers=(
        Debian((*_SMALL, "mariadb-client-core", "mariadb-server-core")),
        DebianFiles(("mariadb-client",), ("usr/bin/mariadb-admin", "usr/bin/mariadb-dump")),
        basis({"mysql": MARIADB_USER}, volumes=("var/lib/mysql",), **_script("mariadb-start")),
    ),
    entrypoint=("mariadb-start",),
    environment=(("PATH", PATH), LANGUAGE),
    user=MARIADB_USER,
)
"""MariaDB on a volume at /var/lib/mysql; arguments are mariadbd's (see image_files/mariadb-start)."""

HTTPD = Recipe(
    name="httpd",
    layers=(
        Debian((*_SMALL, "nginx-light")),
        basis(
            {"www-data": HTTPD_USER},
            volumes=("certs", "shared"),
            **_script("httpd-start"),
            **{"etc/nginx/nginx.conf": (_FILES / "nginx.conf").read_text()},
        ),
    ),
    entrypoint=("httpd-start",),
    environment=(("PATH", PATH), ("WATCH", "/certs")),
    user=HTTPD_USER,
    stop_signal="SIGQUIT",
)
"""nginx, which serves /shared/html over TLS on port 8443 and reads its certificates again when they are renewed."""

DNSMASQ = Recipe(
    name="dnsmasq",
    layers=(Debian((*_SMALL, "dnsmasq-base")), _LOADERS, basis({}, volumes=("shared", "var/lib/misc"))),
    entrypoint=("dnsmasq", "--keep-in-foreground", "--log-facility=-", "--user=root"),
    environment=(("PATH", PATH),),
)
"""dnsmasq for DHCP and TFTP, with iPXE below /usr/lib/ipxe. It begins as root; it takes NET_ADMIN, NET_BIND_SERVICE,
NET_RAW, SETGID and SETUID."""

COREDNS = Recipe(
    name="coredns",
    layers=(Program(path="usr/bin/coredns", ensure=coredns.program().ensure, pins=coredns.PINS),),
    entrypoint=("/usr/bin/coredns",),
)
"""The hub's own DNS for Services."""

LOCAL_PATH = Recipe(
    name="local-path-provisioner",
    layers=(
        Debian(_SMALL),
        Program(path="usr/bin/local-path-provisioner", ensure=local_path.PROVISIONER.ensure, pins=local_path.PINS),
    ),
    entrypoint=("local-path-provisioner",),
    environment=(("PATH", PATH),),
)
"""The image that makes the hub's volumes. It has a shell, because pods that make and remove directories run it."""

KUBE_VIP = Recipe(
    name="kube-vip",
    layers=(Program(path="usr/bin/kube-vip", ensure=kube_vip.KUBE_VIP.ensure, pins=kube_vip.PINS),),
    entrypoint=("/usr/bin/kube-vip",),
)
"""The image that announces the hub's Services of type LoadBalancer."""

ALL = (PAUSE, COREDNS, LOCAL_PATH, KUBE_VIP, TOOLS, IRONIC, MARIADB, HTTPD, DNSMASQ)
