"""A temporary virtual machine of libvirt: the bootstrap machine if no server is lent.

It runs from memory and has no disk. Its domain is transient: once it is destroyed, libvirt has no record of it. Its
name is the machine's full name, and its metadata say which cluster it belongs to (`domain.Mark`), so a domain of others
is never taken for ours. Its id is `local-vm:<domain>/<mac>/<script>`, where `script` is the `boot_tree.digest` of its
boot script. The machine counts as existing while that script is in the boot tree, so a later `up` on another host needs
no libvirt to see that it is gone.
"""

from __future__ import annotations

from metal_ipi.provider.platforms.local_vm.driver import LocalVm

__all__ = ["LocalVm"]
