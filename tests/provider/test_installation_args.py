"""What programs give an `Installation` is what the provider takes."""

from __future__ import annotations

from metal_ipi.provider import types
from metal_ipi.provider.installation import Installation
from tests.mocks import Recorder, is_secret, plain, run
from tests.provider import ssh_servers as ssh

TOKEN = "metal-ipi:index:Installation"
PEM = "-----BEGIN CERTIFICATE-----\n"
FILE = types.LiveFileArgs(url="https://mirror.test/live", sha256="ab" * 32)


def test_all_of_it_is_known_there() -> None:
    args = types.InstallationArgs(
        platform="redfish",
        machine_id="worker-0/uuid",
        hostname="worker-0",
        node="worker-0.lab.facility.test",
        role="worker",
        pool="workers",
        cluster="lab.facility.test",
        generation="0123456789abcdef",
        runs=types.InstalledSystemArgs(
            release="9.6", kernel_arguments=[], consoles=[], ignition="digest", install_device={"smallest": True}
        ),
        address="192.0.2.1",
        addresses=["192.0.2.1"],
        port=22,
        host_key=ssh.public(ssh.key()),
        live_host_key=ssh.public(ssh.key()),
        private_key="a private key",
        live=types.LiveSystemArgs(kernel=FILE, initramfs=FILE, arguments=["ignition.config.url=http://secret"]),
        mac="52:54:00:00:00:01",
        script="#!ipxe\nkernel http://boot.test/kernel\nboot\n",
        chain="#!ipxe\nchain\n",
        user_data="{}",
        ipxe_script_url="http://boot.test/x",
        artifacts=[
            types.ArtifactsPlace(
                directory="an-unguessable-directory", files=["worker-0.ign"], hashes={"worker-0.ign": "x"}
            )
        ],
        members=["worker-0.lab.facility.test"],
        credentials=types.ClusterCredentials(
            url="https://api:6443", ca_pem=PEM, client_cert_pem=PEM, client_key_pem=PEM
        ),
        pre_reboot_commands=["true"],
        pxe_commands=["true"],
        expected={"EXPECTED_RELEASE": "1"},
        log_directory="/logs",
    )
    recorder = Recorder({TOKEN: lambda _: {}})

    def program() -> None:
        types.Installation("worker-0", args)

    run(program, recorder, {})
    (made,) = recorder.of(TOKEN)
    inputs = plain(made.inputs)
    assert Installation().check({key: value for key, value in inputs.items() if value is not None}) == []
    for secret in (
        "privateKey",
        "script",
        "userData",
        "ipxeScriptUrl",
        "live",
        "credentials",
        "preRebootCommands",
        "pxeCommands",
    ):
        assert is_secret(made.inputs[secret]), secret
