"""A live ISO laid out as CoreOS's, of the lab's own kernel, initramfs and root file system.

    writer     an ISO 9660 disc that UEFI boots
    coreos     what is on CoreOS's disc, and where it leaves room for customizations
    reader     what firmware finds on such a disc, for simulated machines

coreos-installer works on these discs as on CoreOS's: `iso kargs modify`, `iso ignition embed`, `iso extract
minimal-iso`. Sources: coreos/coreos-assembler, src/cmd-buildextend-live; coreos/coreos-installer, src/live and
src/miniso.rs.
"""
