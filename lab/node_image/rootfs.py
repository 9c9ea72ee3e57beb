"""The root file system: systemd, OpenSSH, Ignition's helpers, Afterburn and the node's OpenShift program."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from lab.errors import ImageError
from lab.node_image import contents, elf
from lab.node_image.crates import Built
from lab.node_image.tree import Tree

_FILES = Path(__file__).parent / "files" / "rootfs"
_LIBRARIES = ("usr/lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu/systemd", "usr/lib/systemd", "usr/libexec/sudo")


def build(debian: Path, release: str, *, openshift: Path, afterburn: Built | None, installer: Built | None) -> Tree:
    """The tree of the root file system, of live systems as of installed ones.

    `debian` holds the unpacked packages, `openshift` is the static binary that becomes /usr/local/bin/lab-openshift,
    `afterburn` and `installer` (coreos-installer) are the built programs, if there are any. Units come with Afterburn
    only: those of coreos-installer belong to a live system that installs by itself.
    """
    tree = Tree()
    _skeleton(tree)
    for program in contents.PROGRAMS:
        if program in contents.NOT_IN_EVERY_RELEASE and not (debian / program).exists():
            continue
        if not (debian / program).exists():
            raise ImageError(f"program {program}: none of the packages of the node image has it")
        tree.file(program, (debian / program).read_bytes(), 0o4755 if program in contents.SETUID else 0o755)
    for applet in contents.ROOTFS_APPLETS:
        tree.link(f"usr/bin/{applet}", "busybox")
    _systemd(tree, debian)
    tree.file("usr/local/bin/lab-openshift", openshift.read_bytes(), 0o755)
    if afterburn is not None:
        tree.file("usr/bin/afterburn", afterburn.binary.read_bytes(), 0o755)
        for unit in afterburn.units:
            tree.file(f"usr/lib/systemd/system/{unit.name}", unit.read_bytes())
    if installer is not None:
        tree.file("usr/bin/coreos-installer", installer.binary.read_bytes(), 0o755)
    for rules in contents.UDEV_RULES:
        tree.file(f"usr/lib/udev/rules.d/{rules}", (debian / "usr/lib/udev/rules.d" / rules).read_bytes())
    tree.overlay(_FILES)
    tree.file("etc/os-release", os_release(release).encode())
    for private in ("etc/shadow", "etc/gshadow", "etc/sudoers"):
        tree.file(private, tree[private].data, 0o400)
    add_libraries(tree, debian)
    return tree


def os_release(release: str) -> str:
    """/etc/os-release in the shape of RHCOS, where OSTREE_VERSION is the release that the stream names."""
    version = ".".join(release.split(".")[:2])
    return (
        f'NAME="Lab CoreOS"\nPRETTY_NAME="Lab CoreOS {release}"\nID=rhcos-lab\nID_LIKE="debian"\n'
        f'VERSION="{release}"\nVERSION_ID="{version}"\nVARIANT=CoreOS\nVARIANT_ID=coreos\n'
        f"OSTREE_VERSION='{release}'\n"
    )


def add_libraries(tree: Tree, debian: Path) -> None:
    """Add the shared libraries that the programs of `tree` need, the loader among them."""
    todo = [entry.data for _, entry in tree.entries()]
    while todo:
        for name in elf.needed(todo.pop()):
            path = _library(debian, PurePosixPath(name).name)
            if path not in tree:
                data = (debian / path).read_bytes()
                tree.file(path, data, 0o755)
                todo.append(data)
            if name.startswith("/"):  # the loader goes by its full path
                tree.link(f"usr{name}", f"/{path}")


def _library(debian: Path, name: str) -> str:
    for directory in _LIBRARIES:
        if (debian / directory / name).exists():
            return f"{directory}/{name}"
    raise ImageError(f"shared library {name}: none of the packages of the node image has it")


def _skeleton(tree: Tree) -> None:
    for path in ("bin", "sbin", "lib", "lib64"):
        tree.directory(f"usr/{path}")
        tree.link(path, f"usr/{path}")
    for path in ("boot", "dev", "etc/ssl/certs", "etc/systemd/system", "proc", "run", "sys", "usr/lib/ssl", "var/lib"):
        tree.directory(path)
    tree.directory("root", 0o700)
    tree.directory("tmp", 0o1777)
    tree.directory("var/tmp", 0o1777)
    tree.directory("var/home/core", 0o700, uid=1000, gid=1000)
    tree.link("home", "var/home")
    tree.link("var/run", "/run")
    tree.link("etc/mtab", "/proc/self/mounts")
    # Where OpenSSL (Afterburn) and RHCOS's own programs look for the certificates that the initramfs puts there.
    tree.link("usr/lib/ssl/cert.pem", "/etc/ssl/certs/ca-certificates.crt")
    tree.link("etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/certs/ca-certificates.crt")


def _systemd(tree: Tree, debian: Path) -> None:
    source = debian / "usr/lib/systemd/system"
    for unit in contents.UNITS:
        if not (source / unit).exists():
            raise ImageError(f"unit {unit}: Debian's systemd does not have it")
        tree.file(f"usr/lib/systemd/system/{unit}", (source / unit).read_bytes())
    for target, units in contents.WANTED.items():
        for unit in units:
            tree.link(f"usr/lib/systemd/system/{target}.wants/{unit}", f"../{unit}")
    tree.link("usr/lib/systemd/system/default.target", "multi-user.target")
    tree.link("usr/lib/systemd/systemd-udevd", "../../bin/udevadm")
    tree.link("usr/sbin/init", "../lib/systemd/systemd")
