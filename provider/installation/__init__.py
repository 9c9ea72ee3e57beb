"""Installation: a machine's operating system on its disk, and installed again when what it is to run changes.

Life cycle: create gets the machine into its live system, unless something did already, waits until the installer is
done, and restarts it from its disk; the node joins its cluster later, which gates wait for. update does nothing unless
the generation changed, or the last installation did not succeed; then the machine is installed again: in its turn
drained, by kexec or from outside sent into its installer, its former node and etcd member removed, checked, and its new
node given back what people had put on the former one. read asks the machine for its generation; one that is silent is
believed. delete withdraws its boot script and never touches the machine; a worker that an update gives up is drained,
and its node removed.
Killed at any moment: where the machine is, is found from the machine itself (`machine`), so the next run goes on there;
what people had put on its node is kept in the cluster (`node_object`). An installer that is started a second time for
the same generation finds it on the disk and wipes nothing.
"""

from metal_ipi.provider.installation.install import Pace
from metal_ipi.provider.installation.resource import Installation

__all__ = ["Installation", "Pace"]
