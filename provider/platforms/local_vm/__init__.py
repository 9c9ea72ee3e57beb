"""A virtual machine of libvirt's, for a while: the bootstrap machine of a rack that lends no server.

It runs from memory and has no disk. Its domain is transient: once it is destroyed, libvirt knows nothing of it. It is
called by the machine's full name, and its metadata say whose it is (`domain.Mark`), so that one of somebody else's is
never taken for ours. Ids of machines: `local-vm:<domain>/<mac>/<script>`, `script` being `boot_tree.digest` of the
script it boots: it is there for us as long as that lies in the boot tree, and who runs `up` elsewhere later needs no
libvirt to see that it is gone.
"""

from __future__ import annotations

from metal_ipi.provider.platforms.local_vm.driver import LocalVm

__all__ = ["LocalVm"]
