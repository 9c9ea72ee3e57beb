"""The archive with a live system's Ignition, read by the format's description and by coreos-installer itself."""

from __future__ import annotations

import json
import subprocess

import pytest

from metal_ipi.components.boot.ignition import Source, data_url, embedded
from metal_ipi.components.boot.initrd import archive
from tests.components.test_installer import coreos_installer
from tests.lab.node_image.newc import read

_CA = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
_SOURCE = Source(url="https://boot.facility.test/x/rack-worker-0.ign", hash="sha512-" + "0123456789abcdef" * 8)


def test_it_says_where_the_config_is_and_what_it_must_be() -> None:
    assert json.loads(embedded(_SOURCE, certificate_authorities=[data_url(_CA)])) == {
        "ignition": {
            "version": "3.3.0",
            "config": {"merge": [{"source": _SOURCE.url, "verification": {"hash": _SOURCE.hash}}]},
            "security": {"tls": {"certificateAuthorities": [{"source": data_url(_CA)}]}},
        }
    }
    assert "security" not in json.loads(embedded(_SOURCE, certificate_authorities=[]))["ignition"]


@pytest.mark.parametrize("text", ["", "a", "ab", "abc", "abcd", "Küche", embedded(_SOURCE, certificate_authorities=[])])
def test_the_kernel_finds_one_file(text: str) -> None:
    data = archive(text).encode()
    assert read(data) == {"config.ign": (0o100600, 0, 0, (0, 0), text.encode())}
    # As iPXE, GRUB and kexec put it: behind an initramfs, at a multiple of four bytes.
    assert len(data) % 4 == 0
    assert read(data + data)["config.ign"][4] == text.encode()


def test_the_real_coreos_installer_unwraps_it() -> None:
    program = coreos_installer()
    if program is None:
        pytest.skip("coreos-installer is not installed, and was not built")
    text = embedded(_SOURCE, certificate_authorities=[data_url(_CA)])
    unwrapped = subprocess.run(
        [program, "pxe", "ignition", "unwrap"], input=archive(text).encode(), capture_output=True, check=True
    )
    assert unwrapped.stdout.decode() == text
