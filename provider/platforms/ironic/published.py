"""What a server boots, and where: a disc made for it, or, from the network, the boot tree.

A server that boots from the network starts iPXE, which loads Ironic's boot files, or, with the site's own DHCP,
`boot/boot.ipxe` directly. Ironic's boot files lead there too: the «kernel» of the deployed instance is
`boot/start.ipxe` (iPXE boots scripts like kernels). CoreOS's kernel cannot be used there: Ironic adds `root=/dev/ram0`
and one initramfs, never a second one (ironic/drivers/modules/ipxe_config.template), and the live system has its
Ignition in the second one. `boot_iso` would make iPXE fetch a disc, which could not be changed later: `rebuild` of such
a node fails (`auto_lessee` is not set, in start_deploy of ironic/conductor/deployments.py).
"""

from __future__ import annotations

from metal_ipi.provider import boot_tree
from metal_ipi.provider.configuration import Settings
from metal_ipi.provider.errors import InvalidInputs
from metal_ipi.provider.live_iso import disc, place
from metal_ipi.provider.status import Say

OF_DEPLOYMENT = ("deploy_interface", "boot_iso", "kernel", "ramdisk", "image_source", "image_type")
"""Keys in the `instance_info` of an instance that boots its installer."""


def by_network(settings: Settings, server: str) -> bool:
    """Whether a server boots from the network."""
    found = settings.ironic_servers.get(server)
    return found is not None and found.by_network


async def publish(settings: Settings, server: str, mac: str, *, script: str, chain: str | None, say: Say) -> None:
    """Publish a server's boot script, or the disc made from it."""
    if by_network(settings, server):
        if chain is None:
            raise InvalidInputs(f"server {server} boots from the network: `chain` is required, the text of boot.ipxe")
        await boot_tree.publish(settings, mac, script, chain, start=True)
        return
    live_iso = settings.need_ironic().live_iso
    if live_iso is None:
        raise InvalidInputs(f"server {server} boots a disc, but `ironic` does not name the live ISO: set `liveIso`")
    await disc.publish(settings, live_iso, mac, script, say)


async def instance(settings: Settings, server: str, mac: str) -> dict[str, str]:
    """The `instance_info` of an instance that boots its installer."""
    if not by_network(settings, server):
        return {"deploy_interface": "ramdisk", "boot_iso": await place.url_now(settings, mac)}
    start = boot_tree.start_url(settings)
    # Nothing fetches the image. It is set because Ironic 39 cannot rebuild an instance without one, see the module's
    # docstring.
    return {"deploy_interface": "ramdisk", "image_source": start, "kernel": start, "ramdisk": start}
