"""Installation: a machine's operating system on its disk, and installed again when what it is to run changes.

Life cycle: create gets the machine into its live system, unless something did already, waits until the installer is
done, and restarts it from its disk; the node joins its cluster later, which gates wait for. update does nothing unless
the generation changed, or the last installation did not succeed; then the machine is installed again: in its turn
drained, by kexec or from outside sent into its installer, checked, uncordoned. read asks the machine for its
generation; one that is silent is believed. delete withdraws its boot script and never touches the machine.
Killed at any moment: where the machine is, is found from the machine itself (`machine`), so the next run goes on there.
An installer that is started a second time for the same generation finds it on the disk and wipes nothing.
"""

from provider.installation.install import Pace
from provider.installation.resource import Installation

__all__ = ["Installation", "Pace"]
