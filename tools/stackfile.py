"""The configuration of a run: the committed stack file, with the lab's additions. Pure functions from data to data.

Secrets of the lab are kept separately, so that the engine encrypts them: they are never written to a file in clear.
"""

from __future__ import annotations

import base64
import copy
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import yaml

from tools.errors import StackError
from tools.program import import_from

NAMESPACE = "metal-ipi"
_FEW = 100
"""With up to this many workers, a facility is not split by default. A copy of `WORKERS_OF_A_STACK` of the settings,
which take long to load."""
REHEARSAL = "rehearsal"
"""Replaces each secret in a preview without the key to decrypt it."""

Tree = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Config:
    """A stack file, and the secrets to add to it."""

    document: Tree
    """The stack file in the form that the engine reads."""
    secrets: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    """Configuration path, as for `pulumi config set --path`, to secret value."""


def _unfit(root: Path, document: object) -> Iterable[tuple[str, str, str, str]]:
    """Values in a document that no configuration can have, according to the stack file's own project."""
    import_from(root)
    try:
        from metal_ipi.stacks.plain import unfit
    except ModuleNotFoundError as error:
        if error.name not in ("metal_ipi.stacks", "metal_ipi.stacks.plain"):
            raise
        return ()  # an old commit, with which a preview report compares
    return unfit(document)


def read(path: Path) -> Tree:
    """Reads a stack file; raises StackError if it does not exist or is invalid."""
    try:
        document = yaml.safe_load(path.read_text()) or {}
    except FileNotFoundError:
        known = sorted(file.name.split(".")[1] for file in path.parent.glob("Pulumi.*.yaml"))
        raise StackError(
            f"there is no stack '{path.name.split('.')[1]}'",
            why=f"stacks/{path.name} does not exist",
            remedy=f"use one of {', '.join(known) or '(none yet)'}, or write that file",
        ) from None
    # ValueError and RecursionError come from absurdly large numbers and depths
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise StackError(f"stacks/{path.name} is not YAML", why=str(error), remedy="correct the file") from error
    for where, _, why, remedy in _unfit(path.parents[1], document):
        raise StackError(
            f"stacks/{path.name} contains values that a configuration cannot have",
            why=f"{where or 'the whole of it'}: {why}",
            remedy=remedy,
        )
    if not isinstance(document, dict) or not isinstance(cast(Tree, document).get("config", {}), dict):
        raise StackError(
            f"stacks/{path.name} is not a stack file",
            why="it must be a mapping with a mapping `config`",
            remedy="see stacks/Pulumi.lab.yaml for an example",
        )
    return cast(Tree, document)


def cluster(document: Tree) -> str:
    """The cluster's domain, which is in the tags of its machines."""
    config = document.get("config") or {}
    return f"{config.get(f'{NAMESPACE}:clusterName')}.{config.get(f'{NAMESPACE}:baseDomain')}"


def is_hub(document: Tree) -> bool:
    """Whether it is the stack of a hub instead of a cluster."""
    return f"{NAMESPACE}:provisioning" in _config(document)


def hub_of(document: Tree) -> str | None:
    """The lab's hub stack that provides a cluster's servers; None if there is none."""
    hub = _section(document, "lab").get("hub")
    return None if hub is None else str(hub)


def is_managed(document: Tree) -> bool:
    """Whether it is the stack of a cluster that Cluster API installs, on a hub."""
    return bool(_section(document, "clusterApi"))


def lab_machines(document: Tree) -> str | None:
    """The kind of lab machines that the stack wants; None for the stack of a real facility."""
    if _config(document).get(f"{NAMESPACE}:lab") is None:
        return None
    return str(_section(document, "lab").get("machines", "libvirt"))


def is_lab(path: Path) -> bool:
    """Whether a stack file belongs to a lab stack. Raises StackError as `read` does."""
    return lab_machines(read(path)) is not None


def lab_installer(document: Tree) -> str:
    """The lab's installer for the stack: `real` by default for a real OpenShift release."""
    version = _config(document).get(f"{NAMESPACE}:openshiftVersion")
    default = "stand-in" if is_hub(document) or _of_stand_in(version) else "real"
    return str(_section(document, "lab").get("installer", default))


def _of_stand_in(version: object) -> bool:
    """Whether a release is that of the lab's stand-in for openshift-install."""
    return str(version).endswith("-lab")


def wants_small_kubernetes(document: Tree) -> bool:
    """Whether the lab is to use a small imitation of the Kubernetes API."""
    return _section(document, "lab").get("kubernetes") == "small"


def is_disconnected(document: Tree) -> bool:
    """Whether the lab is to be cut off: no names and servers outside its site can be reached."""
    return _section(document, "lab").get("disconnected") is True


def has_host_networks(document: Tree) -> bool:
    """Whether a server has its own networkConfig."""
    servers = _section(document, "platform").get("servers")
    return any(isinstance(each, dict) and each.get("networkConfig") for each in servers or ())


def announces(document: Tree) -> bool:
    """Whether machines announce an address of API or ingress with kube-vip."""
    return any(_section(document, name).get("type") == "kube-vip" for name in ("apiAddress", "ingressAddress"))


def has_proxy(document: Tree) -> bool:
    """Whether nodes use a proxy to reach the internet."""
    return bool(_section(document, "installConfig").get("proxy"))


def uses_metallb(document: Tree) -> bool:
    """Whether MetalLB announces the addresses of services."""
    return str(_section(document, "serviceAddresses").get("type")).startswith("metallb-")


def has_day_two(document: Tree) -> bool:
    """Whether operators or the image registry are installed after the cluster is complete."""
    return bool(_section(document, "dayTwo"))


@dataclass(frozen=True, kw_only=True)
class Obstacle:
    """Why a stack cannot have a kind of machines, and what to do about it."""

    why: str
    remedy: str


_NO_LIBVIRT = Obstacle(
    why="metal-ipi:platform.bootstrap is of type local-vm, and simulated machines have no libvirt",
    remedy="use libvirt machines, or platform.bootstrap of type lend",
)
_NO_BGP = Obstacle(
    why="metal-ipi:apiAddress or ingressAddress is of type kube-vip, and simulated machines share one kernel, so none "
    "can have the address alone",
    remedy="use libvirt machines, or apiAddress of type dns-round-robin and ingressAddress of type dns",
)
_NO_KEEPALIVED = Obstacle(
    why="metal-ipi:apiAddress is of type platform, and the lab's stand-in for OpenShift's keepalived moves addresses "
    "between simulated machines only",
    remedy="use simulated machines",
)
_NO_METAL = Obstacle(
    why="metal-ipi:lab.disconnected is true, and the API of Equinix Metal, which orders the machines, is outside",
    remedy="use the platform redfish",
)
_OTHER_ARCHITECTURE = Obstacle(
    why="metal-ipi:boot.architecture is not x86_64, and the lab's node image is for x86_64 only",
    remedy="use simulated machines",
)

_NO_OPERATOR = Obstacle(
    why="metal-ipi:serviceAddresses.install is true, and the lab has no catalogue with this operator; MetalLB is "
    "installed already",
    remedy="set it to false",
)

_NO_OLM = Obstacle(
    why="metal-ipi:dayTwo is given and metal-ipi:lab.kubernetes is small: small API servers do not run operators",
    remedy="set lab.kubernetes to real, or remove it",
)


def obstacle(document: Tree, machines: str) -> Obstacle | None:
    """Why the stack cannot have `simulated` or `libvirt` machines; None if it can."""
    if uses_metallb(document) and _section(document, "serviceAddresses").get("install", True) is True:
        return _NO_OPERATOR
    if is_disconnected(document) and not rack(document):
        return _NO_METAL
    if has_day_two(document) and wants_small_kubernetes(document):
        return _NO_OLM
    if machines == "simulated":
        return _NO_BGP if announces(document) else _NO_LIBVIRT if _makes_vm(document) else None
    if _section(document, "apiAddress").get("type") == "platform":
        return _NO_KEEPALIVED
    architecture = _section(document, "boot").get("architecture", "x86_64")
    return None if architecture == "x86_64" else _OTHER_ARCHITECTURE


def protect(document: Tree) -> bool | None:
    """The setting `protect`; None if it is not set or invalid."""
    value = _config(document).get(f"{NAMESPACE}:protect")
    return {"true": True, "false": False}.get(str(value).lower())


def rack(document: Tree) -> int:
    """Number of servers with a BMC; 0 if machines are ordered."""
    return len(_servers(document))


def reservations(document: Tree) -> dict[str, str]:
    """The lab's hardware reservations: id to plan."""
    found = _tree(_section(document, "lab").get("reservations"))
    return {str(key): str(value) for key, value in found.items()}


def platform_type(document: Tree) -> str:
    """The type of the platform that the machines come from."""
    return str(_section(document, "platform").get("type", "equinix-metal"))


def may_have_pools(document: Tree) -> bool:
    """Whether workers may be in separate stacks. A quick estimate; the settings have the exact rule."""
    workers = _section(document, "workers")
    many = max(len(_servers(document)), workers.get("count", 0) if isinstance(workers.get("count"), int) else 0)
    return bool(workers.get("pools") or workers.get("perStack")) or many > _FEW


def of_pool(document: Tree, pool: str | None) -> Tree:
    """The stack file of a pool: that of its cluster with the pool's name."""
    if pool is None:
        return document
    return {**document, "config": {**_config(document), f"{NAMESPACE}:pool": pool}}


def has_secrets(document: Tree) -> bool:
    """Whether the file has values that need its own passphrase."""
    return any(True for _ in _encrypted(document.get("config")))


_HUB_IMAGES = {"ironic": "ironic", "database": "mariadb", "files": "httpd", "dhcp": "dnsmasq"}
"""Setting to the lab's image."""


def for_lab_hub(document: Tree, hub: Tree, facts: Tree) -> Config:
    """Adds the facts of the lab and its hub to the file of a hub's stack. Values in the file take precedence."""
    result = _without_salt(document)
    config, name = _config(result), f"{NAMESPACE}:provisioning"
    added: Tree = {
        "images": {setting: hub["images"][image] for setting, image in _HUB_IMAGES.items()},
        "access": {"type": "node-port", "address": hub["address"]},
        # BMC certificates come from the first authority, the artifact host's certificate from the second.
        "ca": "".join(Path(path).read_text() for path in (facts["ca_path"], facts["artifacts"]["ca_path"])),
    }
    config[name] = merge(added, config.get(name) or {})
    config[f"{NAMESPACE}:lab"] = {**(config.get(f"{NAMESPACE}:lab") or {}), "machines": facts["machines"]}
    config.setdefault(f"{NAMESPACE}:hub", {})
    return Config(document=result, secrets={f"{NAMESPACE}:hub.kubeconfig": hub["kubeconfig"]})


def for_lab(document: Tree, facts: Tree, hub: Tree | None = None, kubeconfig: str | None = None) -> Config:
    """Adds the facts of the running lab. Values in the committed file take precedence.

    Args:
        hub: outputs of the hub's stack, with secrets, if the servers come from its Ironic.
        kubeconfig: of the hub whose Cluster API installs the cluster; that has its own installer.
    """
    dns, artifacts = facts["dns"], facts["artifacts"]
    result = _without_salt(document)
    config = _config(result)
    platform, secrets = _rack_of(result, facts) if rack(result) else _project_of(result, facts["api"])
    if hub is not None:
        api, secrets[f"{NAMESPACE}:platform.api.password"] = hub["ironic"], hub["ironicPassword"]
        platform["api"] = {name: api[name] for name in ("endpoint", "username", "ca")}
    added: Tree = {
        "platform": platform,
        "dns": {
            "server": dns["server"],
            "zone": dns["zone"],
            "tsig": {"name": dns["tsig"]["name"], "algorithm": dns["tsig"]["algorithm"]},
        },
        "artifacts": {
            "type": "ssh",
            "host": artifacts["host"],
            "port": artifacts["port"],
            "user": artifacts["user"],
            "hostKey": artifacts["host_key"],
            "directory": artifacts["directory"],
            "baseUrl": artifacts["base_url"],
            "bootBaseUrl": artifacts["boot_base_url"],
            "caBundle": Path(artifacts["ca_path"]).read_text(),
        },
        "boot": {"streamUrl": facts["boot"]["stream_url"]},
        "install": {} if kubeconfig else {"installer": facts["installer"]},
        "timeouts": {"stable": 1},
    }
    if not _of_stand_in(facts["release"]):
        # A node of a real release installs the release's operating system on its disk at the first boot, so it needs a
        # disk.
        cast(Tree, added["boot"])["install"] = {"image": "stream", "device": {"smallest": True}}
        if _of_stand_in(config.get(f"{NAMESPACE}:openshiftVersion")):
            config[f"{NAMESPACE}:openshiftVersion"] = facts["release"]
    if mirror := facts.get("mirror"):
        # The settings for a site's own registry. The artifact host's authority has also signed the registry's
        # certificate.
        added["installConfig"] = {"additionalTrustBundle": Path(artifacts["ca_path"]).read_text()}
        if mirror["release_image"]:
            cast(Tree, added["install"])["releaseImage"] = mirror["release_image"]
        account = base64.b64encode(f"{mirror['username']}:{mirror['password']}".encode()).decode()
        secret = json.dumps({"auths": {mirror["registry"]: {"auth": account}}})
        secrets |= {f"{NAMESPACE}:install.pullSecret": secret}
    if kubeconfig:
        secrets[f"{NAMESPACE}:clusterApi.hub.kubeconfig"] = kubeconfig
    config[f"{NAMESPACE}:lab"] = {**(config.get(f"{NAMESPACE}:lab") or {}), "machines": facts["machines"]}
    for key, values in added.items():
        config[f"{NAMESPACE}:{key}"] = merge(values, config.get(f"{NAMESPACE}:{key}") or {})
    return Config(
        document=result,
        secrets={
            **secrets,
            f"{NAMESPACE}:dns.tsig.secret": dns["tsig"]["secret"],
            f"{NAMESPACE}:artifacts.privateKey": artifacts["private_key"],
        },
    )


def _project_of(document: Tree, api: Tree) -> tuple[Tree, dict[str, str]]:
    """The platform section and the secrets for a lab that orders machines, in the lab's project or in one that the
    stack creates."""
    makes = "projectName" in _section(document, "platform")
    section = {"organizationId": api["organization_id"]} if makes else {"projectId": api["project_id"]}
    return section, {f"{NAMESPACE}:platform.authToken": api["token"]}


def _rack_of(document: Tree, facts: Tree) -> tuple[Tree, dict[str, str]]:
    """The platform section and the secrets for a lab with a rack: the stack's servers get the rack's servers in this
    order. Removes them from `document`."""
    there = cast(list[Tree], facts["rack"]["servers"])
    wanted = cast(list[Tree], _section(document, "platform").pop("servers"))
    if len(there) < len(wanted):
        raise StackError(
            f"the lab's rack has {len(there)} servers, and the stack names {len(wanted)}",
            why="the rack was made before the stack file was changed",
            remedy="run `make down` first",
        )
    servers: list[Tree] = []
    secrets: dict[str, str] = {}
    for number, (server, real) in enumerate(zip(wanted, there, strict=False)):
        bmc = {"address": real["bmc"]["address"], "username": real["bmc"]["username"]}
        servers.append(merge({"bmc": bmc, "mac": real["mac"], "address": real["address"]}, server))
        secrets[f"{NAMESPACE}:platform.servers[{number}].bmc.password"] = real["bmc"]["password"]
    made: Tree = {}
    if _makes_vm(document):
        guest = facts["rack"].get("guest")
        if guest is None:
            raise StackError("the lab's machines are simulated", why=_NO_LIBVIRT.why, remedy=_NO_LIBVIRT.remedy)
        made = {"bootstrap": {name: guest[name] for name in ("uri", "bridge", "mac", "address")}}
    # With a hub, Ironic's conductors get their authorities from the hub's stack.
    trust = {"bmc": {"ca": Path(facts["ca_path"]).read_text()}} if hub_of(document) is None else {}
    return {**made, "servers": servers, **trust}, secrets


def _rack_platform(document: Tree) -> Tree:
    """The platform section of a stack whose servers have BMCs; else empty."""
    platform = _section(document, "platform")
    return platform if platform.get("type") in ("redfish", "ironic") else {}


def _makes_vm(document: Tree) -> bool:
    return _tree(_rack_platform(document).get("bootstrap")).get("type") == "local-vm"


def _servers(document: Tree) -> list[Tree]:
    servers = _rack_platform(document).get("servers")
    found = cast("list[Any]", servers) if isinstance(servers, list) else []
    return [server for server in found if isinstance(server, dict)]


def for_facility(document: Tree) -> Config:
    """The file of a real facility. Without encrypted values the salt is removed, so that any passphrase works."""
    return Config(document=copy.deepcopy(document) if has_secrets(document) else _without_salt(document))


def for_rehearsal(document: Tree) -> Config:
    """A file that needs no key: placeholders replace encrypted values, and a setting tells the program so."""
    result = cast(Tree, _unlocked(_without_salt(document)))
    _config(result)[f"{NAMESPACE}:rehearsal"] = True
    return Config(document=result)


def values(config: Config) -> dict[str, str]:
    """The project's settings as the engine passes them to the program: every value a string, objects as JSON."""
    own = {key: value for key, value in _config(config.document).items() if key.startswith(f"{NAMESPACE}:")}
    return {key.partition(":")[2]: value if isinstance(value, str) else json.dumps(value) for key, value in own.items()}


def of_others(document: Tree) -> Tree:
    """A stack file without the project's own settings."""
    config = {key: value for key, value in _config(document).items() if not key.startswith(f"{NAMESPACE}:")}
    return {**document, "config": config}


def secrets(config: Config) -> tuple[dict[str, str], list[str]]:
    """The secrets: those in clear by their path, and those that are encrypted."""
    return config.secrets, list(_encrypted(config.document))


def without_secrets(config: Config) -> Config:
    """The settings as `for_rehearsal` returns them, with placeholders also for the secrets in clear."""
    result = for_rehearsal(config.document)
    for path in config.secrets:
        put(result.document["config"], path, REHEARSAL)
    return result


def put(document: Any, path: str, value: Any) -> None:
    """Sets a value at a configuration path of the engine, such as `metal-ipi:platform.servers[0].bmc.password`."""
    *parents, last = _parts(path)
    for part in parents:
        document = document[part] if isinstance(part, int) else document.setdefault(part, {})
    document[last] = value


def get(document: Any, path: str) -> Any:
    """The value at such a path. Raises KeyError or IndexError if there is none."""
    for part in _parts(path):
        document = document[part]
    return document


def _parts(path: str) -> list[str | int]:
    return [int(part) if part.isdigit() else part for part in re.findall(r"[^.\[\]]+", path)]


def _config(document: Tree) -> Tree:
    return cast(Tree, document.setdefault("config", {}))


def _section(document: Tree, name: str) -> Tree:
    """A section of the project's settings; empty if it is missing or no mapping."""
    return _tree(_config(document).get(f"{NAMESPACE}:{name}"))


def _tree(value: object) -> Tree:
    return cast(Tree, value) if isinstance(value, dict) else {}


def _without_salt(document: Tree) -> Tree:
    return {key: copy.deepcopy(value) for key, value in document.items() if key != "encryptionsalt"}


def merge(base: Tree, over: Tree) -> Tree:
    """Merges two mappings recursively; values of `over` take precedence."""
    merged = dict(base)
    for key, value in over.items():
        inner = merged.get(key)
        both = isinstance(inner, dict) and isinstance(value, dict)
        merged[key] = merge(cast(Tree, inner), cast(Tree, value)) if both else value
    return merged


def _is_secure(value: Any) -> bool:
    return isinstance(value, dict) and set(cast(Tree, value)) == {"secure"}


def _encrypted(value: Any) -> Iterator[str]:
    if _is_secure(value):
        yield str(value["secure"])
    elif isinstance(value, (dict, list)):
        for each in cast(Tree, value).values() if isinstance(value, dict) else cast(list[Any], value):
            yield from _encrypted(each)


def _unlocked(value: Any) -> Any:
    if isinstance(value, dict):
        return REHEARSAL if _is_secure(value) else {key: _unlocked(item) for key, item in cast(Tree, value).items()}
    return [_unlocked(item) for item in cast(list[Any], value)] if isinstance(value, list) else value
