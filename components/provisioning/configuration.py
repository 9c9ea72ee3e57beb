"""Ironic's configuration: `ironic.conf` with everything that is not secret, and a second file with the secrets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from metal_ipi.components.provisioning import database, metrics
from metal_ipi.components.provisioning.contract import (
    API_PORT,
    DATABASE_PORT,
    FILES_PORT,
    IMAGES_PORT,
    RPC_PORT,
    GivenDatabase,
    IronicArgs,
    LoadBalancer,
)

CONDUCTORS = "ironic-conductors"
"""The headless Service that gives each conductor a DNS name."""
API = "ironic"
IMAGES = "image-cache"
BOOT_FILES = "pxelinux.cfg"
"""The folder of conductors' boot files, to which iPXE is sent. Ironic's default; with `Dhcp` it must not be changed."""
RAMDISK_LOGS = "/shared/log"
"""The directory in which conductors store logs of ramdisks."""

Options = Mapping[str, Mapping[str, str]]

_DRIVERS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "redfish": {
        "boot": ("redfish-virtual-media", "redfish-https"),
        "bios": ("redfish",),
        "firmware": ("redfish",),
        "inspect": ("redfish",),
        "management": ("redfish",),
        "power": ("redfish",),
        "raid": ("redfish",),
        "vendor": ("redfish",),
    },
    "idrac": {
        "boot": ("idrac-redfish-virtual-media",),
        "bios": ("idrac-redfish",),
        "firmware": ("redfish",),
        "inspect": ("idrac-redfish",),
        "management": ("idrac-redfish",),
        "power": ("idrac-redfish",),
        "raid": ("idrac-redfish",),
        "vendor": ("idrac-redfish",),
    },
    "ipmi": {"boot": (), "management": ("ipmitool",), "power": ("ipmitool",), "vendor": ("ipmitool",)},
}
"""Ironic's hardware types, and the interfaces of each (ironic/drivers/{redfish,drac,ipmi}.py)."""
_FOR_ALL: Mapping[str, Sequence[str]] = {
    "bios": ("no-bios",),
    "boot": ("ipxe", "http-ipxe"),
    "console": ("no-console",),
    "deploy": ("ramdisk", "direct"),
    "firmware": ("no-firmware",),
    "inspect": ("agent", "no-inspect"),
    "management": (),
    "network": ("noop",),
    "power": (),
    "raid": ("agent", "no-raid"),
    "rescue": ("no-rescue",),
    "storage": ("noop",),
    "vendor": ("no-vendor",),
}


def drivers() -> tuple[str, ...]:
    """The hardware types that the service can enable."""
    return tuple(_DRIVERS)


def api_url(args: IronicArgs) -> str:
    """The URL of the API from outside of the hub."""
    port = API_PORT if isinstance(args.access, LoadBalancer) else args.access.api
    return f"https://{args.access.address}:{port}"


def files_url(args: IronicArgs, conductor: int) -> str:
    """The URL from which servers fetch a conductor's boot files."""
    scheme = "http" if args.plain_boot_files else "https"
    if isinstance(args.access, LoadBalancer):
        return f"{scheme}://{args.access.files[conductor]}:{FILES_PORT}"
    return f"{scheme}://{args.access.address}:{args.access.files + conductor}"


def images_url(args: IronicArgs) -> str:
    """The URL of the image cache."""
    scheme = "http" if args.plain_boot_files else "https"
    port = IMAGES_PORT if isinstance(args.access, LoadBalancer) else args.access.images
    return f"{scheme}://{args.access.address}:{port}"


def certificate_names(args: IronicArgs) -> list[str]:
    """The names in the API's certificate. Conductors also use it among themselves, and for boot files."""
    access = args.access
    files = access.files if isinstance(access, LoadBalancer) else []
    names = [
        access.address,
        *files,
        f"{API}.{args.namespace}.svc",
        f"{API}.{args.namespace}.svc.cluster.local",
        f"*.{CONDUCTORS}.{args.namespace}.svc.cluster.local",
        f"{IMAGES}.{args.namespace}.svc",
    ]
    return list(dict.fromkeys(names))


def own_options(args: IronicArgs) -> dict[str, dict[str, str]]:
    """The options of `ironic.conf`. `conductor_conf` has those that differ between conductors."""
    options = {
        "DEFAULT": {
            "auth_strategy": "http_basic",
            "http_basic_auth_user_file": "/etc/ironic/accounts/api",
            "rpc_transport": "json-rpc",
            "use_stderr": "true",
            "debug": str(args.log_level == "debug").lower(),
            "default_deploy_interface": "direct",
            "enabled_hardware_types": ",".join(args.drivers),
            **_interfaces(args.drivers),
            "state_path": "/var/lib/ironic",
            "tempdir": "/shared/tmp",  # Ironic hard-links images from there, so it must be on the same volume
            "grub_config_path": "EFI/BOOT/grub.cfg",
            **({"pin_release_version": args.pin_release} if args.pin_release else {}),
        },
        "api": {
            "host_ip": "0.0.0.0",  # noqa: S104 - of a pod
            "port": str(API_PORT),
            "enable_ssl_api": "true",
            "cert_file": "/etc/ironic/tls/tls.crt",
            "key_file": "/etc/ironic/tls/tls.key",
            "public_endpoint": api_url(args),
            "api_workers": "1",
        },
        "json_rpc": {
            "auth_strategy": "http_basic",
            "http_basic_auth_user_file": "/etc/ironic/accounts/rpc",
            "host_ip": "0.0.0.0",  # noqa: S104 - of a pod
            "port": str(RPC_PORT),
            "use_ssl": "true",
            "cert_file": "/etc/ironic/tls/tls.crt",
            "key_file": "/etc/ironic/tls/tls.key",
            "cafile": "/etc/ironic/tls/ca.crt",
        },
        "conductor": {
            "automated_clean": str(args.automated_cleaning).lower(),
            "conductor_group": args.conductor_group,
            # Other conductors take over a node when its conductor has sent no heartbeat for a minute.
            "heartbeat_interval": "10",
            "heartbeat_timeout": "60",
            **_ramdisk_of(args),
        },
        "database": {"max_retries": "-1", "connection_recycle_time": "600"},
        "deploy": {
            "http_root": "/shared/html",
            "default_boot_mode": "uefi",
            "iso_master_path": "/shared/master-iso",
        },
        "dhcp": {"dhcp_provider": "none"},
        "pxe": {
            "tftp_root": "/shared/tftp",
            "images_path": "/shared/images",
            "tftp_master_path": "/shared/master",
            "instance_master_path": "/shared/instances",
            "kernel_append_params": _kernel_arguments(args),
            "pxe_config_subdir": BOOT_FILES if args.dhcp else "",
        },
        "redfish": {"use_swift": "false", "kernel_append_params": _kernel_arguments(args)},
        "agent": {
            # Without a ramdisk of ours nothing reads these logs automatically; they are kept for inspection.
            "deploy_logs_collect": "always" if args.ramdisk.kernel else "on_failure",
            "deploy_logs_storage_backend": "local",
            "deploy_logs_local_path": RAMDISK_LOGS,
        },
        "oslo_concurrency": {"lock_path": "/var/lib/ironic/lock"},
        "inspector": {"require_managed_boot": "true"},
        **(metrics.options(args.metrics) if args.metrics else {}),
    }
    return {name: {key: value for key, value in section.items() if value != ""} for name, section in options.items()}


def ironic_conf(args: IronicArgs) -> str:
    """The text of `ironic.conf`."""
    options = own_options(args)
    for section, more in args.extra.items():
        options.setdefault(section, {}).update(more)
    return _text(options)


def conductor_conf(args: IronicArgs, number: int) -> str:
    """The text of one conductor's own file: its host name, and the URL of its boot files."""
    name = f"{API}-{number}.{CONDUCTORS}.{args.namespace}.svc.cluster.local"
    return _text({"DEFAULT": {"host": name}, "deploy": {"http_url": files_url(args, number)}})


def clashes(args: IronicArgs) -> list[tuple[str, str]]:
    """Extra options that the service sets itself, or that contain credentials: (section, name)."""
    own = own_options(args)
    secret = {"database": {"connection"}, "json_rpc": {"username", "password"}}
    return [
        (section, name)
        for section, options in args.extra.items()
        for name in options
        if name in own.get(section, {}) or name in secret.get(section, set())
    ]


def secret_conf(connection: str, username: str, password: str) -> str:
    """The text of the file with secrets: the database's URL, and the account with which conductors call each other."""
    return _text(
        {
            "database": {"connection": connection},
            "json_rpc": {"auth_type": "http_basic", "username": username, "password": password},
        }
    )


def connection(args: IronicArgs, username: str, password: str) -> str:
    """SQLAlchemy's URL of the database; the database's certificate is verified."""
    given = args.database if isinstance(args.database, GivenDatabase) else None
    host = given.host if given else database.address(args.namespace)
    port = given.port if given else DATABASE_PORT
    name = given.name if given else database.SCHEMA
    account = f"{quote(username, safe='')}:{quote(password, safe='')}"
    trust = "ssl_ca=/etc/ironic/database/ca.crt&ssl_check_hostname=true"
    return f"mysql+pymysql://{account}@{host}:{port}/{name}?charset=utf8mb3&{trust}"


def _interfaces(names: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for interface, shared in _FOR_ALL.items():
        own = [each for name in names for each in _DRIVERS[name].get(interface, ())]
        found[f"enabled_{interface}_interfaces"] = ",".join(dict.fromkeys([*own, *shared]))
    return found


def _kernel_arguments(args: IronicArgs) -> str:
    more = list(args.ramdisk.kernel_arguments)
    if args.ramdisk.ssh_key:
        more.append(f'sshkey="{args.ramdisk.ssh_key}"')
    return " ".join(["nofb", "vga=normal", *more]) if more else ""


def _ramdisk_of(args: IronicArgs) -> dict[str, str]:
    """The ramdisk for nodes that do not name their own."""
    found = {"deploy_kernel": args.ramdisk.kernel, "deploy_ramdisk": args.ramdisk.initramfs}
    return {name: _cached(args, url) for name, url in found.items() if url}


def _cached(args: IronicArgs, url: str) -> str:
    return f"{images_url(args)}/{url.removeprefix('cache:')}" if url.startswith("cache:") else url


def _text(options: Options) -> str:
    lines: list[str] = []
    for section, values in options.items():
        if values:
            # In a value `$` would refer to another option, so it is doubled.
            lines += [f"[{section}]", *(f"{name} = {value.replace('$', '$$')}" for name, value in values.items()), ""]
    return "\n".join(lines)
