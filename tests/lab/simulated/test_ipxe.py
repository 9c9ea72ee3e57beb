"""The script language of boot scripts."""

from __future__ import annotations

import asyncio

import pytest

from lab.machines.simulated.ipxe import Boot, IpxeError, run

TYPHOON = """#!ipxe
# the shape poseidon/typhoon and Metal's documentation use
set base http://boot.test/images
dhcp && echo booting ${net0/mac} ||
kernel ${base}/kernel initrd=main coreos.live.rootfs_url=${base}/rootfs \\
  ignition.firstboot ignition.platform.id=packet
initrd --name main ${base}/initramfs
boot || shell
"""


START = "http://b/boot/boot.ipxe"
CHAIN = """#!ipxe
chain --replace mac-${net0/mac:hexhyp}.ipxe || chain --replace uuid-${uuid}.ipxe || exit
"""


def walk(script: str, scripts: dict[str, str] | None = None) -> tuple[Boot | None, list[str]]:
    """Run a script; scripts it chains to are looked up."""
    said: list[str] = []
    known = {START: script, **(scripts or {})}

    async def fetch(url: str) -> str:
        if url not in known:
            raise OSError("Not found")
        return known[url]

    return asyncio.run(run(START, {"net0/mac": "52:54:00:01:02:03", "uuid": "4c4c"}, fetch, said.append)), said


def boot(script: str, scripts: dict[str, str] | None = None) -> tuple[Boot, list[str]]:
    """Run a script that must boot."""
    result, said = walk(script, scripts)
    assert result is not None
    return result, said


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


def test_alternatives() -> None:
    script = "#!ipxe\nfrobnicate && echo never || kernel http://b/k\nboot\n"
    result, said = boot(script)
    assert (result.kernel, said) == ("http://b/k", ["frobnicate: command not found"])


@pytest.mark.parametrize("name", ["mac-52-54-00-01-02-03", "uuid-4c4c"])
def test_a_site_s_chain_script_finds_what_is_there_for_a_machine(name: str) -> None:
    result, _ = boot(CHAIN, {f"http://b/boot/{name}.ipxe": "#!ipxe\nkernel ../k a=b\nboot\n"})
    assert (result.kernel, result.arguments) == ("http://b/k", ("a=b",))


@pytest.mark.parametrize(
    "script", [CHAIN, "#!ipxe\necho done\n", "#!ipxe\nexit\nboot\n", "#!ipxe\nchain --replace ends\nboot\n"]
)
def test_a_script_without_a_boot_leaves_it_to_the_next_device(script: str) -> None:
    assert walk(script, {"http://b/boot/ends": "#!ipxe\nexit\n"})[0] is None


def test_a_script_goes_on_after_one_that_it_chained_to_without_replacing_itself() -> None:
    result, said = boot("#!ipxe\nchain ends\nkernel k\nboot\n", {"http://b/boot/ends": "#!ipxe\necho a\nexit\n"})
    assert (result.kernel, said) == ("http://b/boot/k", ["a"])


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("kernel http://b/k\nboot", "not an iPXE script"),
        ("#!ipxe\nfrobnicate\n", "frobnicate: command not found"),
        ("#!ipxe\nboot\n", "no kernel was selected"),
        (f"#!ipxe\nchain {START}\n", "without an end"),
        ("#!ipxe\necho ${net0/mac:uristring}\n", "know settings as"),
        ("#!ipxe\nchain http://b/missing\n", "Not found"),
        ("#!ipxe\nkernel http://b/k\ninitrd http://b/i\nboot\n", "UEFI: no initrd= argument"),
        ("#!ipxe\nkernel http://b/k initrd=main\ninitrd --name other http://b/i\nboot\n", "no image named main"),
    ],
)
def test_what_a_real_machine_would_not_boot(script: str, message: str) -> None:
    with pytest.raises(IpxeError, match=message):
        walk(script)


def test_only_what_is_named_is_loaded_and_in_that_order() -> None:
    """UEFI firmware goes by `initrd=`; what was fetched and is not named is not there."""
    fetched = "initrd --name config http://b/c\ninitrd --name main http://b/i\ninitrd --name more http://b/m\nboot\n"
    boot, _ = walk(f"#!ipxe\nkernel http://b/k initrd=main initrd=config\n{fetched}")
    assert boot is not None and boot.initrds == (("main", "http://b/i"), ("config", "http://b/c"))


_ALL_CARDS = """#!ipxe
set n:int32 -1
:next
inc n
isset ${net${n}/mac} || exit
chain http://c/${net${n}/mac:hexhyp} ||
goto next
"""
_DEPLOYED = """#!ipxe
goto boot
kernel http://c/never
:boot
kernel http://c/kernel root=/dev/ram0 initrd=ramdisk || goto boot
initrd http://c/ramdisk || goto boot
boot
sanboot --no-describe || exit 0
"""


@pytest.mark.parametrize("installs", [True, False])
def test_a_kernel_that_is_a_script_is_run(installs: bool) -> None:
    """As Ironic's boot files lead to the site's; what they have loaded is gone."""
    known = {START: _ALL_CARDS, "http://c/52-54-00-01-02-03": _DEPLOYED}
    known["http://c/kernel"] = "#!ipxe\nimgfree\nchain --replace http://b/mine || exit\n"
    if installs:
        known["http://b/mine"] = "#!ipxe\nkernel http://b/k a=b\nboot\n"

    async def fetch(url: str) -> str:
        if url not in known:
            raise OSError("Not found")
        return known[url]

    async def head(url: str) -> bytes:
        return known.get(url, "MZ").encode()

    found = asyncio.run(run(START, {"net0/mac": "52:54:00:01:02:03"}, fetch, lambda line: None, head))
    assert found == (Boot(kernel="http://b/k", arguments=("a=b",), initrds=()) if installs else None)


@pytest.mark.parametrize(
    ("script", "why"), [("#!ipxe\n:a\ngoto a\n", "without an end"), ("#!ipxe\ngoto a\n", "no label a")]
)
def test_a_label_that_leads_nowhere(script: str, why: str) -> None:
    with pytest.raises(IpxeError, match=why):
        walk(script)
