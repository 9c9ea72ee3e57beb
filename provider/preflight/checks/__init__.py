"""The checks: each module has `NAME` and `async def check(subject)`, which returns findings and changes nothing.

    token             is the API token valid, and may it write?
    plans             do plan, operating system and architecture fit, and does the location have them?
    capacity          does the location have so many machines now?
    reservations      do the reserved servers exist, are they free, and of the plan?
    spot              is the bid high enough now?
    limits            does the project allow so many machines?
    runs              does everything with the stack's marks belong to this installation of it?
    names             are the machines' names, the project's and the API's address free?
    addresses         do networks overlap, and are VLANs and blocks free?
    hardware          do machines have the memory and the processors that they need?
    inventory         do servers match the settings, and are they healthy?
    secure-boot       would firmware start what servers must boot?
    bmcs              does every BMC answer, and accept the account?
    ironic            does Ironic answer, and could each server be claimed?
    dns               can the zones be written?
    boot-files        do kernel, initramfs and rootfs exist, with the right hashes?
    artifact-host     can files be uploaded, and can machines fetch them?
    installer         is the installer there, and for the release?
    images            do registries have the release's images?
    stream            do machines boot the CoreOS that belongs to the installer?
    clock             is our clock right?

A check that cannot ask raises ProviderError, which is reported as an error of that check.
"""
