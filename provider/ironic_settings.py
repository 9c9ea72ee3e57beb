"""Section `ironic` of the provider's configuration: an Ironic, and the servers from it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from metal_ipi.provider.bmc_settings import BOOT_MODES, HOST_AND_PORT, LiveIso
from metal_ipi.provider.forms import PEM, Anything, Mac, form, one_of, wrong
from metal_ipi.provider.given import GivenList, Secret, default
from metal_ipi.provider.inputs import Conflict, Inputs

IPMI = "ipmi"
DRIVERS = ("redfish", "idrac", IPMI)
"""Ironic's hardware types. The first two have virtual media; IPMI has none, so its servers boot from the network."""
IPMI_ADDRESS = rf"ipmi://{HOST_AND_PORT}"
BOOTS = ("disc", "network")
NOT_OF_IPMI = frozenset({"bios", "firmware"})
"""Ironic's interfaces for which the hardware type ipmi has no clean steps (ironic/drivers/ipmi.py)."""
_NAME = r"[A-Za-z0-9][A-Za-z0-9._~-]{0,199}"
STEP_INTERFACES = ("bios", "raid", "firmware", "management", "power", "vendor", "deploy")
"""Ironic's interfaces with clean steps."""
DEPLOY_STEPS = {"raid": ("delete_configuration", "apply_configuration"), "firmware": ("update",)}
"""Deploy steps that a BMC executes itself, by interface (ironic/drivers/modules/redfish/{raid,firmware}.py, 39.0).
Ironic silently skips unknown steps, because they might belong to a ramdisk (`skip_missing` in do_node_deploy of
ironic/conductor/deployments.py). Firmware settings restart the server into a ramdisk: here they are clean steps."""
CREATES_RAID = ("raid", "create_configuration")
"""The clean step that makes what the node's `target_raid_config` says, and fails where that is empty. Nothing here sets
it: the deploy step `apply_configuration` is given its volumes (ironic/drivers/base.py and modules/redfish/raid.py)."""
WIPING = frozenset({"raid", "deploy"})
"""Interfaces whose steps delete data on disks."""
_OF_ENROLLED = ("address", "username", "password")


def _is_object(text: str) -> str:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise wrong("must be a JSON object")
    return text


class CleanStep(Inputs):
    """One clean step (https://docs.openstack.org/ironic/latest/admin/cleaning.html#manual-cleaning)."""

    interface: Annotated[str, one_of(*STEP_INTERFACES)]
    """Ironic's interface with the step, one of STEP_INTERFACES."""
    step: Annotated[str, form(r"[a-z][a-z0-9_]{0,99}", "the name of a step")]
    """Its name, e.g. `apply_configuration`."""
    args: Annotated[str, AfterValidator(_is_object)] = "{}"
    """Its arguments, a JSON object."""

    @classmethod
    def conflicts(cls, given: Mapping[str, Any]) -> Iterator[Conflict]:
        if (given.get("interface"), given.get("step")) == CREATES_RAID:
            yield ("step",), "makes volumes of a target_raid_config, which nothing here sets: use a deploy step of raid"

    def to_ironic(self) -> dict[str, Any]:
        """The step in the format of Ironic's API."""
        arguments = json.loads(self.args)
        return {"interface": self.interface, "step": self.step, **({"args": arguments} if arguments else {})}


class DeployStep(CleanStep):
    """One deploy step (https://docs.openstack.org/ironic/latest/admin/node-deployment.html), one of DEPLOY_STEPS."""

    @classmethod
    def conflicts(cls, given: Mapping[str, Any]) -> Iterator[Conflict]:
        known = [f"{interface}.{step}" for interface, steps in DEPLOY_STEPS.items() for step in steps]
        if f"{given.get('interface')}.{given.get('step')}" not in known:
            yield ("step",), f"must be, with its interface, one of {', '.join(known)}"


class IronicServer(Inputs):
    """One server: enrolled with its BMC (`driver`), or one of those that Ironic has already."""

    driver: Annotated[str, one_of(*DRIVERS)] | None = None
    """Ironic's hardware type, one of DRIVERS. If given, we enrol the server."""
    address: (
        Annotated[
            str,
            form(
                rf"https?://{HOST_AND_PORT}/?|{IPMI_ADDRESS}",
                "http, https or ipmi and a host, without user name and path",
            ),
        ]
        | None
    ) = None
    """URL of its BMC from the conductors' network; for IPMI `ipmi://<host>[:<port>]`. With `driver`."""
    username: Annotated[str | None, Field(repr=False)] = None
    """An account of the BMC; with `driver`."""
    password: Secret[str] | None = None
    """The account's password; with `driver`."""
    system_id: str | None = None
    """Path of the Redfish System (`/redfish/v1/Systems/1`), needed if the BMC has several; with `driver`."""
    verify_ca: Annotated[str, form(r"true|false|/.*", "true, false, or a path where the conductors run")] = "true"
    """How the conductors verify the BMC's certificate: `true`: by their system's authorities; `false`: not; a path: by
    this file on the conductors. With `driver`."""
    mac: Mac | None = None
    """The MAC address of the interface that it boots from. Only for servers that boot from the network: Ironic needs a
    port with it."""
    boot: Annotated[str, one_of(*BOOTS)] | None = None
    """What a node that Ironic has already boots its installer from, one of BOOTS; not given: a disc. With `driver`, the
    driver determines it."""
    conductor_group: Anything = ""
    """The conductor group of the server; with `driver`."""
    node: str | None = None
    """Name or UUID of a node that Ironic has already; without `driver`."""
    resource_class: Annotated[str, form(r"[A-Za-z0-9._-]{1,80}", "a resource class")] | None = None
    """The resource class: of an enrolled server, the one to set (not given: `baremetal`); of others, the one that they
    must have."""
    traits: GivenList[str] = default(())
    """Traits that the node must have; without `driver`."""
    clean_steps: GivenList[CleanStep] = default(())
    """Clean steps that run once before the server is available, and again when they change: firmware settings, RAID.
    With `driver`."""
    deploy_steps: GivenList[DeployStep] = default(())
    """Deploy steps that run before it boots, once for each claim: RAID, new firmware. With `driver`, and not with
    ipmi."""
    boot_mode: Annotated[str, one_of(*BOOT_MODES)] | None = None
    """The boot mode that its firmware is set to when it is deployed, one of BOOT_MODES. Not given: it is not
    changed."""

    @property
    def by_network(self) -> bool:
        """Whether it boots from the network: IPMI has no virtual media."""
        return self.driver == IPMI or self.boot == "network"

    @classmethod
    def conflicts(cls, given: Mapping[str, Any]) -> Iterator[Conflict]:
        ipmi, address = given.get("driver") == IPMI, str(given.get("address") or "")
        if address and given.get("driver") is not None and ipmi != address.startswith("ipmi:"):
            yield ("address",), "must be ipmi://<host> with the driver ipmi, and https://<host> with the others"
        network = ipmi or given.get("boot") == "network"
        if network and given.get("mac") is None:
            yield ("mac",), "is required for a server that boots from the network: Ironic recognizes it by this address"
        if not network and given.get("mac"):
            yield ("mac",), "is only for servers that boot from the network: remove it"
        for key in ("systemId", "verifyCa", "deploySteps") if ipmi else ():
            if given.get(key):
                yield (key,), "is not for servers with the driver ipmi: remove it"
        if given.get("driver") is not None:
            for key in _OF_ENROLLED:
                if given.get(key) is None:
                    yield (key,), "is required with `driver`: Ironic reaches the BMC by it"
            for key in ("node", "traits", "boot"):
                if given.get(key):
                    yield (key,), "and `driver` are given: a server is either enrolled, or one that Ironic has already"
        else:
            for key in (*_OF_ENROLLED, "systemId", "conductorGroup", "cleanSteps", "deploySteps"):
                if given.get(key):
                    yield (key,), "is only for a server that is enrolled: set `driver`, or remove it"
            if given.get("node") is None and given.get("resourceClass") is None:
                yield ("node",), "or `driver` or `resourceClass` must be given, to choose the server"


class IronicSettings(Inputs):
    """How Ironic is reached. Its credentials are stored nowhere else, and never part of its text form."""

    endpoint: Annotated[
        str,
        form(rf"https://{HOST_AND_PORT}(/\S*)?", "an https URL without user name and password"),
        AfterValidator(lambda value: value.rstrip("/")),
    ]
    """URL of Ironic's API, without `/v1`."""
    username: Annotated[str, Field(repr=False)]
    """The account (HTTP basic)."""
    password: Secret[str]
    """The account's password."""
    ca: Annotated[str, form(PEM, "a certificate in PEM")] | None = None
    """PEM: only certificates signed by these authorities are trusted. Not given: the system's authorities."""
    claimant: Annotated[str, form(_NAME, "letters, digits and . _ ~ -, at most 200")]
    """The owner's name for its claims, unique among all users of this Ironic: allocations are named
    `<claimant>-<server>`."""
    live_iso: LiveIso | None = None
    """CoreOS's live ISO, from which the servers' discs are made. Not needed if all servers boot from the network."""
    release: Annotated[str, one_of("keep", "remove")] = "keep"
    """What happens to an enrolled server that is given back: `keep`: it stays in Ironic, available; `remove`: it is
    removed."""
