"""What a server is to boot, where it finds it: on a disc that is made for it, or, from the network, in the boot tree.

A server that boots from the network comes into iPXE, and that to Ironic's boot files, or, by the site's own DHCP, to
`boot/boot.ipxe` at once. Ironic's lead there, too: the «kernel» that an instance is deployed with is `boot/start.ipxe`
(iPXE boots scripts as it boots kernels). A kernel of CoreOS could not stand there. Ironic adds `root=/dev/ram0` and one
initramfs, never a second (ironic/drivers/modules/ipxe_config.template), and the live system has its Ignition in that.
`boot_iso` would have iPXE fetch a disc, and no disc can be changed later: `rebuild` of a node with one fails
(`auto_lessee` is not set, in start_deploy of ironic/conductor/deployments.py).
"""

from __future__ import annotations

from metal_ipi.provider import boot_tree
from metal_ipi.provider.configuration import Settings
from metal_ipi.provider.errors import InvalidInputs
from metal_ipi.provider.live_iso import disc, place
from metal_ipi.provider.status import Say

OF_DEPLOYMENT = ("deploy_interface", "boot_iso", "kernel", "ramdisk", "image_source", "image_type")
"""What an instance that boots its installer has in its `instance_info`."""


def by_network(settings: Settings, server: str) -> bool:
    """Whether a server boots from the network."""
    found = settings.ironic_servers.get(server)
    return found is not None and found.by_network


async def publish(settings: Settings, server: str, mac: str, *, script: str, chain: str | None, say: Say) -> None:
    """Lets a server boot a script, or the disc that is made of it."""
    if by_network(settings, server):
        if chain is None:
            raise InvalidInputs(f"server {server} boots from the network: `chain` is required, the text of boot.ipxe")
        await boot_tree.publish(settings, mac, script, chain, start=True)
        return
    live_iso = settings.need_ironic().live_iso
    if live_iso is None:
        raise InvalidInputs(f"server {server} is to boot a disc, and `ironic` does not name it: set `liveIso`")
    await disc.publish(settings, live_iso, mac, script, say)


async def instance(settings: Settings, server: str, mac: str) -> dict[str, str]:
    """What an instance that boots it has in its `instance_info`."""
    if not by_network(settings, server):
        return {"deploy_interface": "ramdisk", "boot_iso": await place.url_now(settings, mac)}
    start = boot_tree.start_url(settings)
    # Nobody fetches the image: without one, Ironic 39 rebuilds no instance, for the reason that is told above.
    return {"deploy_interface": "ramdisk", "image_source": start, "kernel": start, "ramdisk": start}
