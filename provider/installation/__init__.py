"""Installation: a machine's operating system on its disk, installed again when what the machine must run changes.

Life cycle:

- create boots the machine into its live system, unless it is there already; waits until the installer is done, and
  restarts the machine from its disk. The node joins its cluster later; gates wait for that;
- update does nothing unless the generation changed, or the last installation failed. Then the machine is installed
  again: when its turn comes it is drained, booted into its installer by kexec or from outside, its old Node object and
  etcd member are removed, it is checked, and the new node gets the labels and taints that people had set on the old
  one;
- read asks the machine for its generation; the state of a machine that does not answer is kept;
- delete withdraws its boot script, and does not touch the machine. A worker that an update removes is drained, and its
  Node object deleted.

Killed at any moment: the next run asks the machine itself for its progress (`machine`), and continues there. What
people had set on its node is kept in the cluster (`node_object`). An installer that starts a second time for the same
generation finds it on the disk, and wipes nothing.
"""

from metal_ipi.provider.installation.install import Pace
from metal_ipi.provider.installation.pool import InstallationPool, Pools
from metal_ipi.provider.installation.resource import Installation

__all__ = ["Installation", "InstallationPool", "Pace", "Pools"]
