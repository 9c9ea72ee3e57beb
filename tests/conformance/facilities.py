"""Facilities whose assets the real openshift-install makes, while our whole program runs against the engine's mocks.

The driver runs as it does for a user, so the installer gets the install-config.yaml that our program renders, and our
program renders userdata, pointers and boot scripts from the installer's own files.
"""

from __future__ import annotations

import copy
import hashlib
import json
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pulumi
import trustme
import yaml

from lab.openshift.real import RELEASE
from metal_ipi.components.boot.host_keys import host_key
from metal_ipi.stacks.program import main
from tests.conformance import ignition
from tests.mocks import Recorder, config_text, plain, run, whole_files
from tests.stacks.answers import ANSWERS, CALLS, SEED, commands, settings, stack_file
from tests.stacks.rack import SERVERS, rack_text

ARCHITECTURES = ("x86_64", "aarch64")
_SERVER = {"name": "control-plane-0", "mac": "52:54:00:00:00:0b", "address": "192.0.2.11"}
# A directory that the driver is about to remove is kept, and the installer's exit code is its own.
_KEEPING = """\
#!/bin/sh
# It is not a FIPS-capable one, and would say so instead of making what the other makes.
OPENSHIFT_INSTALL_SKIP_HOSTCRYPT_VALIDATION=1 {program} "$@"
code=$?
[ "$1" != create ] || cp -a "$4/." {kept}
exit $code
"""


_NETWORK = {"name": "storage", "vlan": 1100, "roles": ["control-plane", "worker"], "gateway": {"size": 16}}


def _metal(**changes: Any) -> dict[str, str]:
    """Of a metro: `platform.networks` are wanted in one."""
    file = stack_file("da11")["platform"]
    platform = {key: value for key, value in file.items() if key != "facilities"}
    return settings("da11", platform={**platform, "metro": "da", **changes.pop("platform", {})}, **changes)


_ARM_PLANS = {"bootstrapPlan": "c3.large.arm64", "controlPlanePlan": "c3.large.arm64", "workerPlan": "c3.large.arm64"}


def _of_arm(text: dict[str, str]) -> dict[str, str]:
    tree: dict[str, Any] = {key: yaml.safe_load(value) if value[:1] in "{[" else value for key, value in text.items()}
    tree["boot"] = {**tree["boot"], "architecture": "aarch64"}
    if tree["platform"].get("type", "equinix-metal") == "equinix-metal":
        tree["platform"] = {**tree["platform"], **_ARM_PLANS}
    return config_text(tree)


ECDSA = host_key(SEED, "ann", "ecdsa").public_key
OWN_FIELDS: dict[str, Any] = {
    "networking": {
        "clusterNetwork": [{"cidr": "10.64.0.0/15", "hostPrefix": 24}, {"cidr": "10.72.0.0/15", "hostPrefix": 24}],
        "serviceNetwork": ["172.20.0.0/16"],
        "ovnKubernetesConfig": {"ipv4": {"internalJoinSubnet": "100.66.0.0/16"}},
    },
    "proxy": {
        "httpProxy": "http://proxy.example.com:3128",
        "httpsProxy": "http://somebody:swordfish@proxy.example.com:3129",
        "noProxy": ".example.com,192.0.2.0/24",
    },
    "additionalTrustBundle": trustme.CA().cert_pem.bytes().decode(),
    "additionalTrustBundlePolicy": "Always",
    "imageDigestSources": [{"source": "quay.io/openshift-release-dev/ocp", "mirrors": ["mirror.test:5000/ocp"]}],
    "capabilities": {"baselineCapabilitySet": "None", "additionalEnabledCapabilities": ["NodeTuning", "Ingress"]},
    "featureSet": "CustomNoUpgrade",
    "featureGates": ["RouteExternalCertificate=true"],
    "cpuPartitioningMode": "AllNodes",
    "other": {"publish": "External"},
}
"""Each field that a site may say under the installer's own names."""
BOTH_FAMILIES: dict[str, Any] = {
    "clusterNetwork": [{"cidr": "10.128.0.0/14", "hostPrefix": 23}, {"cidr": "fd01::/48", "hostPrefix": 64}],
    "serviceNetwork": ["172.30.0.0/16", "fd02::/112"],
}
MACHINE_CONFIG: dict[str, Any] = {
    "ntpServers": ["ntp.example.com", "192.0.2.123"],
    "extensions": ["usbguard", "kerberos"],
    "diskEncryption": {"roles": ["worker"], "tpm2": True},
    "containerStorage": {"roles": ["worker"], "device": "/dev/disk/by-path/pci-0000:00:1f.2-ata-2"},
}
"""All that nodes may be given from their first boot on."""
ARBITER: dict[str, Any] = {
    "platform__servers": [{**SERVERS[1], "name": "arbiter-0"}, *SERVERS[2:]],
    "apiAddress": {"type": "platform", "address": "192.0.2.8"},
    "ingressAddress": {"type": "platform", "address": "192.0.2.9"},
    "installConfig__featureSet": "TechPreviewNoUpgrade",
}
"""Of a rack's settings (`tests.stacks.rack`) what makes it one of two control plane machines with an arbiter."""
EXTERNAL = {"external": {"platformName": "acme", "cloudControllerManager": "External"}}
SITE = Path(__file__).with_name("site")
"""Manifests of a user's."""
_STATIC: dict[str, Any] = {"platform__networkBoot": "static", "platform__interface": "eno1"}
SETTINGS: Mapping[str, dict[str, str]] = {
    "metal": _metal(
        workers={"count": 2},
        platform={"networks": [_NETWORK]},
        apiAddress={"type": "kube-vip"},
        serviceAddresses={"type": "metallb-bgp", "pools": [{"name": "elastic", "reserve": 4}], "install": False},
    ),
    "compact": _metal(workers={"count": 0}),
    "four": _metal(controlPlane={"count": 4}, workers={"count": 0}),
    "five": _metal(controlPlane={"count": 5}, workers={"count": 2}),
    "rack": rack_text(apiAddress={"type": "kube-vip", "mode": "arp", "address": "192.0.2.9"}, **_STATIC),
    "site": rack_text(
        apiAddress={"type": "kube-vip", "mode": "arp", "address": "192.0.2.9"},
        install__manifests=[str(SITE)],
        machineConfig=MACHINE_CONFIG,
        installConfig=OWN_FIELDS,
        **_STATIC,
    ),
    "single": rack_text(
        clusterName="single",
        platform__bootstrap={"type": "none"},
        platform__servers=[{**_SERVER, "bmc": {"address": "https://10.0.0.11"}}],
        **_STATIC,
    ),
    "beside": rack_text(
        platform__ipv6={"network": "2001:db8:64::/64", "gateway": "2001:db8:64::1"},
        platform__servers=[{**SERVERS[each], "ipv6Address": f"2001:db8:64::1{each}"} for each in (2, 4)],
        installConfig={"networking": BOTH_FAMILIES},
        **_STATIC,
    ),
    "baremetal": rack_text(
        apiAddress={"type": "platform", "address": "192.0.2.8"},
        ingressAddress={"type": "platform", "address": "192.0.2.9"},
        **_STATIC,
    ),
    "fips": rack_text(install__fips=True, **_STATIC),
    "arbiter": rack_text(**ARBITER, **_STATIC),
    "external": rack_text(installConfig__platform=EXTERNAL, install__manifests=[str(SITE)], **_STATIC),
}
"""3 + 2 on Metal with all that our program puts on its nodes, VLANs, the API's address, services' addresses; 3 + 0, 4 +
0 and 5 + 2 on Metal; a rack of 3 + 2, and the same with manifests of the user's; one node in place, and one with a
worker beside it, of both families; the rack on OpenShift's platform baremetal, in FIPS mode, of two with an
arbiter, and on platform external. All are installed to disk."""
EVERY = (
    *((name, "x86_64") for name in SETTINGS),
    *((name, "aarch64") for name in ("metal", "rack", "single")),
)
"""Name and architecture: of ARM machines one on each platform, and one that bootstraps in place."""
MASTERS, WORKERS = (
    dict(zip(SETTINGS, counts, strict=True))
    for counts in ((3, 3, 4, 5, 3, 3, 1, 1, 3, 3, 2, 3), (2, 0, 0, 2, 2, 2, 0, 1, 2, 2, 1, 2))
)


@dataclass(frozen=True, kw_only=True)
class Facility:
    """A facility, with all that the installer and our program made."""

    name: str
    config: Mapping[str, str]
    """The stack's configuration, as the engine hands it over."""
    directory: Path
    """The installer's, as it left it."""
    request: Mapping[str, Any]
    """What the driver was asked for."""
    assets: str
    """What the driver printed."""
    recorder: Recorder
    """What our program declared; without what would answer it, and of its requests only the names."""
    uploads: Mapping[str, str]
    """What our program uploads, by URL."""
    outputs: Mapping[str, Any] = field(repr=False)

    @property
    def domain(self) -> str:
        return f"{self.config['clusterName']}.{self.config['baseDomain']}"

    @property
    def authority(self) -> str:
        """The certificate authority that the site brings along, PEM; empty where it brings none."""
        return json.loads(self.config.get("installConfig", "{}")).get("additionalTrustBundle", "")

    @property
    def in_place(self) -> bool:
        return bool(self.request["inPlace"])

    @cached_property
    def bootstrap(self) -> dict[str, Any]:
        """The installer's Ignition of what bootstraps the cluster."""
        return json.loads(json.loads(self.assets)["bootstrap"])

    @cached_property
    def bootstrap_files(self) -> dict[str, bytes]:
        return ignition.files(self.bootstrap)

    def manifest(self, name: str) -> dict[str, Any]:
        """One of the installer's manifests, as the bootstrap machine gets it."""
        return yaml.safe_load(self.bootstrap_files[f"/opt/openshift/manifests/{name}"])

    def pointer(self, role: str) -> dict[str, Any]:
        """The installer's own pointer: `master` or `worker`."""
        return json.loads((self.directory / f"{role}.ign").read_text())

    @property
    def log(self) -> str:
        return (self.directory / ".openshift_install.log").read_text()

    def uploaded(self, end: str) -> dict[str, str]:
        """What our program uploads whose name ends so, by URL."""
        return {url: text for url, text in self.uploads.items() if url.endswith(end)}


def facility(name: str, architecture: str, installer: Path, directory: Path) -> Facility:
    """Run the program for one of `SETTINGS`, with the real installer.

    Args:
        directory: an empty one.
    """
    kept, uploads = directory / "kept", dict[str, str]()
    kept.mkdir()
    keeping = directory / "openshift-install"
    keeping.write_text(_KEEPING.format(program=shlex.quote(str(installer)), kept=shlex.quote(str(kept))))
    keeping.chmod(0o755)
    config = SETTINGS[name] if architecture == "x86_64" else _of_arm(copy.deepcopy(SETTINGS[name]))
    install = {**json.loads(config.get("install", "{}")), "installer": str(keeping), "workDirectory": str(directory)}
    config = {**config, "openshiftVersion": RELEASE, "install": json.dumps(install)}
    printed: list[str] = []

    def create(args: pulumi.runtime.MockResourceArgs) -> dict[str, Any]:
        if "checks" in args.name:
            return commands()(args)
        inputs = plain(args.inputs)
        command = ["sh", "-c", inputs["create"]]
        done = subprocess.run(
            command, cwd=inputs.get("dir"), input=inputs["stdin"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        printed[:] = [done.stdout]
        return {"stdout": done.stdout, "stderr": done.stderr}

    def upload(args: pulumi.runtime.MockResourceArgs) -> dict[str, Any]:
        texts, url = whole_files(args.inputs), f"https://boot.test/{args.name}"
        uploads.update({f"{url}/{file}": text for file, text in texts.items()})
        return {
            "url": url,
            "bootUrl": url,
            "hashes": {file: f"sha512-{hashlib.sha512(text.encode()).hexdigest()}" for file, text in texts.items()},
            "directory": args.name,
        }

    def keys(args: pulumi.runtime.MockResourceArgs) -> dict[str, Any]:
        made = ANSWERS["metal-ipi:index:ClusterKeys"](args)
        return {**made, "publicKey": ECDSA} if args.inputs.get("keyType") == "ecdsa" else made

    answers = {
        **ANSWERS,
        "command:local:Command": create,
        "metal-ipi:index:Artifacts": upload,
        "metal-ipi:index:ClusterKeys": keys,
    }
    recorder = Recorder(answers, CALLS)
    outputs = run(main, recorder, config, stack=name)
    return Facility(
        name=name,
        config=config,
        directory=kept,
        request=json.loads(plain(recorder.one("install-assets-create").inputs["stdin"])),
        assets=printed[0],
        recorder=replace(recorder, answers={}, calls={}, requests=dict.fromkeys(recorder.requests)),
        uploads=uploads,
        outputs=outputs,
    )
