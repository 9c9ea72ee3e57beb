"""What a rack's settings become: the bootstrap machine, who waits for it, installations, and what checks them."""

from __future__ import annotations

import hashlib
import itertools
import json
from typing import Any

import pulumi
import pytest
import trustme

from metal_ipi.components.boot import site
from metal_ipi.components.boot.ignition import data_url
from metal_ipi.stacks.problems import SettingsError
from metal_ipi.stacks.settings import parse
from tests.mocks import Recorder, is_secret, plain
from tests.stacks.answers import ANSWERS, checked, node_files, stack_file
from tests.stacks.rack import rack7, rack_declared, rack_text

_MACHINE = "metal-ipi:index:EphemeralMachine"
_INSTALLATION = "metal-ipi:index:Installation"
_SERVERS = stack_file("rack7")["platform"]["servers"]
_LEND = {"type": "lend", "server": "worker-0"}
_VM = {
    "type": "local-vm",
    "address": "192.0.2.126",
    "mac": "52:54:00:72:61:ff",
    "bridge": "br0",
    "uri": "qemu+ssh://kvm.example.com/system",
}


def _generations(recorder: Recorder) -> dict[str, str]:
    return {args.name: plain(args.inputs["generation"]) for args in recorder.of(_INSTALLATION)}


def _live(recorder: Recorder) -> dict[str, str]:
    """The files of the live system that installs worker-4."""
    return node_files(recorder.inputs("workers-installers")["files"]["rack-worker-4.ign"])


def _archive(recorder: Recorder) -> str:
    return recorder.inputs("workers-initrds")["files"]["rack-worker-4.img"]


# --- the bootstrap machine -----------------------------------------------------------------------------------------


def test_the_bootstrap_machine_is_a_virtual_one() -> None:
    recorder = rack7(bootstrap=_VM, servers=_SERVERS[:3])
    (machine,) = recorder.of(_MACHINE)
    inputs = plain(machine.inputs)
    script = inputs.pop("script")
    assert inputs == {
        "platform": "local-vm",
        "hostname": "rack7-bootstrap",
        "cluster": "rack7.facility.test",
        "mac": _VM["mac"],
        "publicIpv4": _VM["address"],
        "bridge": "br0",
        "memoryMib": 24576,
        "cpus": 4,
        "chain": site.chain_script(),
        "disposable": True,
        "timeoutSeconds": 300,
    }
    assert is_secret(machine.inputs["script"])
    assert "\ninitrd --name config http://boot.test/x/bootstrap.img\n" in script and "ignition.config" not in script
    archive = recorder.inputs("bootstrap-initrd")["files"]["bootstrap.img"]
    assert '"source":"https://boot.test/x/bootstrap.ign","verification":{"hash":"sha512-' in archive
    libvirt = recorder.one("metal-ipi").inputs["libvirt"]
    assert is_secret(libvirt) and plain(libvirt) == f'{{"uri": "{_VM["uri"]}"}}'
    assert recorder.inputs("bootstrap-removal-removed")["platform"] == "local-vm"


def test_its_kernel_arguments_carry_a_network_of_its_own() -> None:
    bootstrap = {**_VM, "bootImage": "/srv/ipxe.iso", "interface": "enp1s0"}
    recorder = rack7(bootstrap=bootstrap, servers=_SERVERS[:3], networkBoot="static", interface="eno1")
    inputs = recorder.inputs("rack7-bootstrap")
    name = "rack7-bootstrap.rack7.facility.test"
    assert f" ip=192.0.2.126::192.0.2.1:255.255.255.0:{name}:enp1s0:none nameserver=192.0.2.53 " in inputs["script"]
    assert inputs["bootImage"] == "/srv/ipxe.iso"


@pytest.mark.parametrize(("bootstrap", "lent"), [(_LEND, True), (_VM, False)], ids=["lend", "local-vm"])
def test_only_a_worker_whose_server_was_lent_waits_for_it(bootstrap: dict[str, Any], lent: bool) -> None:
    recorder = rack7(bootstrap=bootstrap, servers=_SERVERS[:4])
    assert recorder.inputs("rack7-bootstrap")["platform"] == ("redfish" if lent else "local-vm")
    assert len(recorder.of(_INSTALLATION)) == 4
    removal = "bootstrap-removal-removed"
    assert (removal in recorder.after("rack7-worker-0-installation")) == lent
    assert removal not in recorder.after("rack7-control-plane-0-installation")
    # A server is claimed before it is lent.
    assert ("rack7-worker-0-server" in recorder.depends_on("rack7-bootstrap")) == lent
    assert "rack7-bootstrap" not in recorder.after("rack7-worker-0-server")


# --- installations -------------------------------------------------------------------------------------------------


def test_a_number_that_is_raised_installs_one_machine_once_more() -> None:
    before, after = _generations(rack_declared()), _generations(rack_declared(platform__servers__0__installation=1))
    assert [name for name, found in after.items() if found != before[name]] == ["rack-worker-4-installation"]


def test_an_installation_is_told_the_rules() -> None:
    (first, *_) = rack_declared(boot__install__validHours=7).of(_INSTALLATION)
    assert (first.inputs["validHours"], first.inputs["keep"], first.inputs["consent"]) == (7, False, False)
    recorder = rack_declared(reprovision={"controlPlane": "keep", "consent": ["rack-control-plane-1"]})
    told = {args.name: (args.inputs["keep"], args.inputs["consent"]) for args in recorder.of(_INSTALLATION)}
    assert told["rack-control-plane-0-installation"] == (True, False)
    assert told["rack-control-plane-1-installation"] == (True, True)


def test_a_machine_that_is_kept_is_checked_for_what_it_runs() -> None:
    runs = {"rack-control-plane-0-installation": "a" * 16, "rack-worker-0-installation": "b" * 16}

    def installed(args: pulumi.runtime.MockResourceArgs) -> dict[str, Any]:
        return {"generation": runs.get(args.name, plain(args.inputs["generation"]))}

    for rule in ("keep", "refuse"):
        recorder = rack_declared(
            {**ANSWERS, _INSTALLATION: installed},
            reprovision={"controlPlane": rule},
            controlPlane={"kernelArguments": ["nosmt"]},
            workers={"kernelArguments": ["nosmt"]},
        )
        for name in ("control-plane-0", "control-plane-1", "worker-0"):
            asked = checked(recorder, f"rack-{name}")
            kept = (rule, name) == ("keep", "control-plane-0")
            wanted = runs if kept else _generations(recorder)
            assert asked["EXPECTED_GENERATION"] == wanted[f"rack-{name}-installation"]
            assert (asked["EXPECTED_RELEASE"] == "") == (asked["EXPECTED_KERNEL_ARGUMENTS"] == "") == kept


def test_an_installed_machine_has_its_static_network_from_a_profile() -> None:
    recorder = rack_declared(
        platform__networkBoot="static", platform__interface="eno1", boot__kernelArguments=["nosmt"]
    )
    network = ["rd.neednet=1", "ip=192.0.2.14::192.0.2.1:255.255.255.0:rack-worker-4.rack.example.com:eno1:none"]
    network.append("nameserver=192.0.2.53")
    inputs = recorder.inputs("rack-worker-4-installation")
    assert inputs["runs"]["kernelArguments"] == ["nosmt"]
    assert inputs["runs"]["network"] == "192.0.2.14/24 on eno1, gateway 192.0.2.1, resolvers 192.0.2.53"
    # The live system has kernel arguments, the installed one has none.
    assert " ".join(network) in inputs["script"] and set(network) <= set(inputs["live"]["arguments"])
    live = _live(recorder)
    options = live["/etc/coreos/installer.d/10-metal-ipi.yaml"]
    assert 'append-karg: ["nosmt"]\n' in options and "ip=" not in options
    assert 'copy-network: true\nnetwork-dir: "/etc/metal-ipi/network"\n' in options
    assert checked(recorder, "rack-worker-4")["EXPECTED_KERNEL_ARGUMENTS"] == "nosmt"
    # The first boot's initramfs and the node itself have the same profile.
    first = live["/etc/metal-ipi/network/metal-ipi-eno1.nmconnection"]
    node = node_files(live["/etc/metal-ipi/disk.ign"])
    assert first == node["/etc/NetworkManager/system-connections/metal-ipi-eno1.nmconnection"]
    assert "\naddress1=192.0.2.14/24\ngateway=192.0.2.1\n" in first


def test_a_private_authority_is_with_all_that_is_fetched_and_counts_for_nothing() -> None:
    authority = trustme.CA().cert_pem.bytes().decode()
    recorder, before = rack_declared(artifacts__caBundle=authority), rack_declared()
    assert _generations(recorder) == _generations(before)
    archive = _archive(recorder)
    embedded = json.loads(archive[archive.index("{") : archive.rindex("}") + 1])
    trusted = {"security": {"tls": {"certificateAuthorities": [{"source": data_url(authority)}]}}}
    assert embedded["ignition"].items() >= trusted.items()
    (merged,) = embedded["ignition"]["config"]["merge"]
    assert merged["source"].startswith("https://") and merged["verification"]["hash"].startswith("sha512-")
    live = _live(recorder)
    assert live["/etc/metal-ipi/ca.pem"] == authority
    # The node itself fetches from the machine config server only, whose authority is the cluster's own.
    assert data_url(authority) not in live["/etc/metal-ipi/disk.ign"]
    # Without such an authority no machine is told of one.
    assert "config.ign" in _archive(before) and "security" not in _archive(before)
    assert "/etc/metal-ipi/ca.pem" not in _live(before)


def test_what_kexec_starts_is_what_ipxe_starts() -> None:
    recorder = rack_declared()
    inputs = recorder.inputs("rack-worker-4-installation")
    config = inputs["live"]["config"]
    assert config["sha256"] == hashlib.sha256(_archive(recorder).encode()).hexdigest()
    assert f"\ninitrd --name config {config['url']}\n" in inputs["script"]
    assert " initrd=main initrd=config " in inputs["script"]
    # Both are deleted once the machine is installed.
    assert [place["files"] for place in inputs["artifacts"]] == [["rack-worker-4.ign"], ["rack-worker-4.img"]]


# --- addresses -----------------------------------------------------------------------------------------------------

_APIS: tuple[dict[str, Any], ...] = (
    {"type": "dns-round-robin"},
    {"type": "external", "address": "192.0.2.77"},
    *(
        {"type": "kube-vip", **mode, **address}
        for mode in ({}, {"mode": "arp"}, {"mode": "bgp"})
        for address in ({}, {"address": "192.0.2.200"})
    ),
)
_SERVICES: tuple[dict[str, Any], ...] = (
    {"type": "none"},
    {"type": "cloud-controller"},
    *(
        {"type": kind, "pools": [pool], "install": False}
        for kind in ("metallb-l2", "metallb-bgp")
        for pool in ({"name": "own", "addresses": ["192.0.2.240/28"]}, {"name": "elastic", "reserve": 4})
    ),
)


def test_what_settings_accept_a_rack_can_do() -> None:
    """Nobody gives out addresses or peers here: settings say so, before the platform would have to."""
    taken: list[tuple[str, str, str]] = []
    for api, services in itertools.product(_APIS, _SERVICES):
        changes = {"apiAddress": api, "serviceAddresses": services}
        if api["type"] == "external":
            changes["machineConfigServer"] = {"allowedNetworks": ["192.0.2.0/24"]}
        try:
            parse(rack_text(**changes), "rack")
        except SettingsError:
            continue
        rack_declared(**changes)
        taken.append((api["type"], api.get("mode", ""), services["type"]))
    apis = [("dns-round-robin", ""), ("external", ""), ("kube-vip", "arp")]
    assert taken == [(*found, kind) for found in apis for kind in ("none", "metallb-l2")]
