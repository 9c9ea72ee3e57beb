"""Section `ironic` of the provider's configuration: an Ironic, and the servers that are had from it."""

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
"""Ironic's hardware types. The first two attach an image by virtual media; IPMI has none, and its servers boot from the
network."""
IPMI_ADDRESS = rf"ipmi://{HOST_AND_PORT}"
BOOTS = ("disc", "network")
NOT_OF_IPMI = frozenset({"bios", "firmware"})
"""Ironic's interfaces that this hardware type has no clean steps of its own for (ironic/drivers/ipmi.py)."""
_NAME = r"[A-Za-z0-9][A-Za-z0-9._~-]{0,199}"
STEP_INTERFACES = ("bios", "raid", "firmware", "management", "power", "vendor", "deploy")
"""Ironic's interfaces that have clean steps."""
DEPLOY_STEPS = {"raid": ("delete_configuration", "apply_configuration"), "firmware": ("update",)}
"""Deploy steps that a BMC does by itself, by interface (ironic/drivers/modules/redfish/{raid,firmware}.py, 39.0).
Ironic leaves steps out that it does not know, without a word, for they might be a ramdisk's (`skip_missing` in
do_node_deploy of ironic/conductor/deployments.py). Settings of the firmware restart the server into a ramdisk: they are
clean steps here."""
WIPING = frozenset({"raid", "deploy"})
"""Those whose steps take what is on the disks."""
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
    """Ironic's interface that has it, one of STEP_INTERFACES."""
    step: Annotated[str, form(r"[a-z][a-z0-9_]{0,99}", "the name of a step")]
    """Its name, e.g. `apply_configuration`."""
    args: Annotated[str, AfterValidator(_is_object)] = "{}"
    """Its arguments, a JSON object."""

    def to_ironic(self) -> dict[str, Any]:
        """As Ironic's API takes it."""
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
    """One server: enrolled with its BMC (`driver`), or taken from those that Ironic has already."""

    driver: Annotated[str, one_of(*DRIVERS)] | None = None
    """Ironic's hardware type, one of DRIVERS; given: the server is enrolled, and is ours."""
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
    """URL of its BMC, as the conductors reach it, for IPMI `ipmi://<host>[:<port>]`; with `driver`."""
    username: Annotated[str | None, Field(repr=False)] = None
    """An account of the BMC; with `driver`."""
    password: Secret[str] | None = None
    """Its password; with `driver`."""
    system_id: str | None = None
    """Path of the System (`/redfish/v1/Systems/1`), where the BMC has several; with `driver`."""
    verify_ca: Annotated[str, form(r"true|false|/.*", "true, false, or a path where the conductors run")] = "true"
    """How the conductors verify the BMC's certificate: by the authorities of their system, not at all, or by this
    file of theirs; with `driver`."""
    mac: Mac | None = None
    """The MAC address of the interface that it boots from; of servers that boot from the network: Ironic needs a port
    of it."""
    boot: Annotated[str, one_of(*BOOTS)] | None = None
    """What a node that Ironic has boots its installer from, one of BOOTS; not given: a disc. Without `driver`, which
    says it."""
    conductor_group: Anything = ""
    """The group of conductors that has it; with `driver`."""
    node: str | None = None
    """Name or UUID of a node that Ironic has; without `driver`."""
    resource_class: Annotated[str, form(r"[A-Za-z0-9._-]{1,80}", "a resource class")] | None = None
    """The resource class: of an enrolled server, which it gets (not given: `baremetal`); of others, which it has."""
    traits: GivenList[str] = default(())
    """Traits that a node that is taken has; without `driver`."""
    clean_steps: GivenList[CleanStep] = default(())
    """What is done to it before it is available, once, and again when they are others: settings of its firmware, RAID;
    with `driver`."""
    deploy_steps: GivenList[DeployStep] = default(())
    """What is done when it is deployed, before it boots, once for each claim: RAID, new firmware; with `driver`, and
    not with ipmi."""
    boot_mode: Annotated[str, one_of(*BOOT_MODES)] | None = None
    """What its firmware is set to when it is deployed, one of BOOT_MODES; not given: what it is set to stays."""

    @property
    def by_network(self) -> bool:
        """Whether it boots from the network: a BMC by IPMI attaches nothing."""
        return self.driver == IPMI or self.boot == "network"

    @classmethod
    def conflicts(cls, given: Mapping[str, Any]) -> Iterator[Conflict]:
        ipmi, address = given.get("driver") == IPMI, str(given.get("address") or "")
        if address and given.get("driver") is not None and ipmi != address.startswith("ipmi:"):
            yield ("address",), "must be ipmi://<host> with the driver ipmi, and https://<host> with the others"
        network = ipmi or given.get("boot") == "network"
        if network and given.get("mac") is None:
            yield ("mac",), "is required of a server that boots from the network: Ironic knows it by that"
        if not network and given.get("mac"):
            yield ("mac",), "is of servers that boot from the network: take it out"
        for key in ("systemId", "verifyCa", "deploySteps") if ipmi else ():
            if given.get(key):
                yield (key,), "is not of servers with the driver ipmi: take it out"
        if given.get("driver") is not None:
            for key in _OF_ENROLLED:
                if given.get(key) is None:
                    yield (key,), "is required with `driver`: Ironic reaches the BMC by it"
            for key in ("node", "traits", "boot"):
                if given.get(key):
                    yield (key,), "and `driver` are given: a server is enrolled, or taken from those that Ironic has"
        else:
            for key in (*_OF_ENROLLED, "systemId", "conductorGroup", "cleanSteps", "deploySteps"):
                if given.get(key):
                    yield (key,), "is of a server that is enrolled: set `driver`, or take it out"
            if given.get("node") is None and given.get("resourceClass") is None:
                yield ("node",), "or `driver` or `resourceClass` must be given: which server it is to be"


class IronicSettings(Inputs):
    """How Ironic is reached. Its credentials are nowhere else, and never in a text made of this."""

    endpoint: Annotated[
        str,
        form(rf"https://{HOST_AND_PORT}(/\S*)?", "an https URL without user name and password"),
        AfterValidator(lambda value: value.rstrip("/")),
    ]
    """URL of its API, without `/v1`."""
    username: Annotated[str, Field(repr=False)]
    """Account (HTTP basic)."""
    password: Secret[str]
    """Its password."""
    ca: Annotated[str, form(PEM, "a certificate in PEM")] | None = None
    """PEM: only what these certificates signed is trusted; not given: the system's CAs."""
    claimant: Annotated[str, form(_NAME, "letters, digits and . _ ~ -, at most 200")]
    """Whose claims these are; unique among all that share this Ironic: allocations are named
    `<claimant>-<server>`."""
    live_iso: LiveIso | None = None
    """CoreOS's live ISO, which discs of servers are made of; not needed where all boot from the network."""
    release: Annotated[str, one_of("keep", "remove")] = "keep"
    """What becomes of an enrolled server when it is given back: it stays Ironic's, available; or it is taken out."""
