"""The lab's facts for its users: addresses and credentials of its services."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pydantic import TypeAdapter, ValidationError

from lab.bmc.identity import Guest, Server
from lab.errors import LabError, NotRunning
from lab.kubernetes import programs
from lab.kubernetes.programs import Programs
from lab.layout import Layout, write_private
from lab.network import plan
from lab.openshift.kinds import OpenShift


@dataclass(frozen=True, kw_only=True)
class Api:
    """The Metal API."""

    url: str
    token: str
    project_id: str
    organization_id: str
    metro: str
    facility: str


@dataclass(frozen=True, kw_only=True)
class Tsig:
    """The key that signs DNS updates."""

    name: str
    """With its final dot."""
    algorithm: str
    secret: str
    """Base64."""


@dataclass(frozen=True, kw_only=True)
class Dns:
    """The DNS server: RFC 2136 updates and queries."""

    server: str
    zone: str
    tsig: Tsig


@dataclass(frozen=True, kw_only=True)
class Artifacts:
    """The upload server, and where what was uploaded is served."""

    host: str
    port: int
    user: str
    host_key: str
    """Public host key in OpenSSH's one-line form."""
    private_key: str
    """The user's key, OpenSSH PEM."""
    directory: str
    base_url: str
    boot_base_url: str
    """The same tree by http: iPXE firmware cannot know the facility's authority."""
    ca_path: str
    """The facility's own authority (PEM), which signed the certificate of base_url's server."""


@dataclass(frozen=True, kw_only=True)
class Boot:
    """The files to boot."""

    stream_url: str


@dataclass(frozen=True, kw_only=True)
class Bgp:
    """The facility's router: Metal's side of BGP."""

    asn: int
    peers: list[str]
    """Its addresses, as machines see them."""
    md5: bool
    """Whether sessions use the password of their project: without it this system's kernel signs no TCP segments."""
    hold_seconds: int
    """After which a machine that says nothing is lost."""
    keepalive_seconds: int
    elastic: str
    """The range of elastic addresses, in CIDR notation."""


@dataclass(frozen=True, kw_only=True)
class Rack:
    """Servers that are there from the start, each with a BMC."""

    servers: list[Server]
    gateway: str
    prefix: int
    """Length of the prefix of their network."""
    nameserver: str
    guest: Guest | None = None
    """A virtual machine that there may be besides; None where machines are simulated: there is no libvirt."""


@dataclass(frozen=True, kw_only=True)
class Mirror:
    """The site's registry of images, whose certificate is of the facility's own authority."""

    registry: str
    """Host and port."""
    username: str
    password: str
    release_image: str = ""
    """The release image that is in it, by digest and by OpenShift's own name; empty with the stand-in's release."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """All of it; facts.json is its JSON form."""

    machines: str
    """`libvirt` or `simulated`."""
    api: Api | None
    """None in a lab with a rack."""
    ca_path: str
    dns: Dns
    artifacts: Artifacts
    boot: Boot
    installer: str = ""
    """The program openshift-install: the lab's stand-in for it, or the real one."""
    release: str = ""
    """The release that it installs."""
    openshift: str = ""
    """The program lab-openshift: what of OpenShift the lab stands in for, on machines and as its operators."""
    bgp: Bgp | None = None
    """None if no router is installed: elastic addresses can be reserved, but are not routed."""
    kubernetes: Programs | None = None
    """None where there is no kube-apiserver or no etcd: machines have small API servers of the lab's own."""
    rack: Rack | None = None
    """None in a lab with the Metal API."""
    mirror: Mirror | None = None
    """None but in a lab that is disconnected: nothing outside of the site resolves, or answers."""

    def save(self, layout: Layout) -> None:
        """Write facts.json, for its owner only."""
        write_private(layout.facts, _FACTS.dump_json(self, indent=2) + b"\n")


_FACTS = TypeAdapter(Facts)


def load(layout: Layout) -> Facts | None:
    """The facts of a lab that was started before, None if there never was one. Raises LabError for unreadable ones."""
    try:
        return _FACTS.validate_json(layout.facts.read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError as error:
        raise LabError(
            f"{layout.facts} is of another version of this project: stop the lab (`make down`) and start it again"
        ) from error


def require(layout: Layout) -> Facts:
    """The facts, or NotRunning."""
    facts = load(layout)
    if facts is None:
        raise NotRunning(f"there is no lab in {layout.state}: start one with `python -m lab up --state {layout.state}`")
    return facts


def ensure(
    layout: Layout,
    machines: str,
    openshift: OpenShift,
    rack: int = 0,
    *,
    real_kubernetes: bool = True,
    disconnected: bool = False,
    day_two: bool = False,
    shared_api_servers: bool = False,
) -> Facts:
    """The facts of this state directory: made at its first start, the same ever after but for what this system has.

    A `rack` of so many servers stands in the place of the Metal API.
    """
    known = load(layout) or _new(layout, machines, rack, disconnected=disconnected)
    found = programs.find() if real_kubernetes else ""
    if machines != "simulated" and not isinstance(found, str):
        found = replace(found, metallb=None)  # emulated processors have enough to do
    if not isinstance(found, str) and not day_two:
        found = replace(found, olm=None)
    if not isinstance(found, str):
        were = known.kubernetes is not None and known.kubernetes.shared
        found = replace(found, shared=shared_api_servers or were)
    now = replace(
        known,
        installer=str(openshift.installer),
        release=openshift.release,
        openshift=str(openshift.program),
        bgp=None if rack else _bgp(),
        kubernetes=None if isinstance(found, str) else found,
        mirror=replace(known.mirror, release_image=_release_image(openshift)) if known.mirror is not None else None,
    )
    now.save(layout)  # always: what this system has may have changed
    return now


def _release_image(openshift: OpenShift) -> str:
    from lab.mirror import images

    return images.release_image(images.ensure(openshift.images)) if openshift.images is not None else ""


def _new(layout: Layout, machines: str, rack: int, *, disconnected: bool) -> Facts:
    """The data that are made once: identities and secrets."""
    import base64
    import secrets
    import uuid

    from lab.bmc import identity
    from lab.machines import libvirt_daemon
    from lab.network import upload_keys

    api = Api(
        url="https://api.equinix.com/metal/v1",
        token=secrets.token_urlsafe(24),
        project_id=str(uuid.uuid4()),
        organization_id=str(uuid.uuid4()),
        metro=plan.METRO,
        facility=plan.FACILITY,
    )
    secret = base64.b64encode(secrets.token_bytes(32)).decode()
    return Facts(
        machines=machines,
        api=None if rack else api,
        ca_path=str(layout.ca),
        dns=Dns(server=plan.DNS, zone=plan.ZONE, tsig=Tsig(name="metal-ipi.", algorithm="hmac-sha256", secret=secret)),
        artifacts=Artifacts(
            host=plan.BOOT_NAME,
            port=22,
            user=upload_keys.USER,
            host_key=upload_keys.ensure(layout, upload_keys.HOST)[1],
            private_key=upload_keys.ensure(layout, upload_keys.CLIENT)[0],
            directory="/artifacts",
            base_url=f"https://{plan.BOOT_NAME}/artifacts",
            boot_base_url=f"http://{plan.BOOT_NAME}/artifacts",
            ca_path=str(layout.facility_ca),
        ),
        boot=Boot(stream_url=f"http://{plan.BOOT_NAME}/streams/lab.json"),
        rack=Rack(
            servers=identity.make(
                rack, str(layout.ca), most=identity.MOST if machines == "simulated" else identity.LARGEST
            ),
            gateway=identity.network(rack).gateway,
            prefix=identity.network(rack).prefix,
            nameserver=plan.DNS,
            guest=identity.guest(libvirt_daemon.URI) if machines == "libvirt" else None,
        )
        if rack
        else None,
        mirror=Mirror(registry=plan.MIRROR_REGISTRY, username="mirror", password=secrets.token_urlsafe(18))
        if disconnected
        else None,
    )


def _bgp() -> Bgp | None:
    """The kind of router that this system supports."""
    from lab.network import bird

    if bird.program() is None:
        return None
    return Bgp(
        asn=plan.BGP_ASN,
        peers=list(plan.BGP_PEERS),
        md5=bird.signatures_work(),
        hold_seconds=bird.HOLD_SECONDS,
        keepalive_seconds=bird.KEEPALIVE_SECONDS,
        elastic=plan.ELASTIC,
    )
