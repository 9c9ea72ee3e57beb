"""The checks: each module has `NAME` and `async def check(subject)`, which answers findings and changes nothing.

    token             is the API token valid, and may it write?
    plans             do plan, operating system and architecture fit, and does the place have them?
    capacity          has the place so many machines at the moment?
    reservations      are reserved servers there, free, and of the plan?
    spot              would the bid be taken at the moment?
    limits            does the project allow so many machines?
    runs              does what carries the stack's marks belong to this installation of it?
    names             are the machines' names, the project's and the API's address free?
    addresses         do networks overlap, and are VLANs and blocks free?
    hardware          have machines the memory and the processors that they need?
    inventory         are servers what the stack takes them for, and well?
    secure-boot       would firmware start what servers are to boot?
    bmcs              does every BMC answer, and let us in?
    ironic            does Ironic answer, and could each server be claimed?
    dns               can the zones be written?
    boot-files        are kernel, initramfs and rootfs where they are said to be, and what they are said to be?
    artifact-host     can files be uploaded, and do machines get them?
    installer         is the installer there, and for the release?
    stream            do machines boot the CoreOS that the installer is made for?
    clock             is our clock right?

A check that cannot ask raises ProviderError, which is told as an error of its own.
"""
