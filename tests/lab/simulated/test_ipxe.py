"""The script language of boot scripts."""

from __future__ import annotations

import asyncio

import pytest

from lab.machines.simulated.ipxe import Boot, IpxeError, run

TYPHOON = """#!ipxe
# the shape poseidon/typhoon and Metal's documentation use
set base http://boot.test/images
isset ${net0/mac} && echo booting ${net0/mac} ||
kernel ${base}/kernel initrd=main coreos.live.rootfs_url=${base}/rootfs \\
  ignition.firstboot ignition.platform.id=packet
initrd --name main ${base}/initramfs
boot || shell
"""


def boot(script: str, scripts: dict[str, str] | None = None) -> tuple[Boot, list[str]]:
    """Run a script; scripts it chains to are looked up."""
    said: list[str] = []

    async def fetch(url: str) -> str:
        if scripts is None or url not in scripts:
            raise OSError("Not found")
        return scripts[url]

    return asyncio.run(run(script, {"net0/mac": "52:54:00:01:02:03"}, fetch, said.append)), said


def test_a_live_pxe_script() -> None:
    result, said = boot(TYPHOON)
    assert result == Boot(
        kernel="http://boot.test/images/kernel",
        arguments=(
            "initrd=main",
            "coreos.live.rootfs_url=http://boot.test/images/rootfs",
            "ignition.firstboot",
            "ignition.platform.id=packet",
        ),
        initrds=(("main", "http://boot.test/images/initramfs"),),
    )
    assert said == ["booting 52:54:00:01:02:03"]


def test_chains_are_followed() -> None:
    result, _ = boot("#!ipxe\nchain --autofree http://b/2\n", {"http://b/2": TYPHOON})
    assert result.kernel.endswith("/kernel")


def test_goto_and_alternatives() -> None:
    script = "#!ipxe\nfrobnicate || goto second\necho never\n:second\nkernel http://b/k\nboot\n"
    result, said = boot(script)
    assert (result.kernel, said) == ("http://b/k", [])


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("kernel http://b/k\nboot", "not an iPXE script"),
        ("#!ipxe\nfrobnicate\n", "frobnicate: command not found"),
        ("#!ipxe\nboot\n", "no kernel was selected"),
        ("#!ipxe\necho done\n", "end of script without a boot"),
        ("#!ipxe\n:a\ngoto a\n", "runs in circles"),
        ("#!ipxe\ngoto nowhere\n", "No such label"),
        ("#!ipxe\nchain http://b/missing\n", "Not found"),
        ("#!ipxe\nkernel http://b/k\ninitrd http://b/i\nboot\n", "UEFI: no initrd= argument"),
        ("#!ipxe\nkernel http://b/k initrd=main\ninitrd --name other http://b/i\nboot\n", "no image named main"),
    ],
)
def test_what_a_real_machine_would_not_boot(script: str, message: str) -> None:
    with pytest.raises(IpxeError, match=message):
        boot(script)
