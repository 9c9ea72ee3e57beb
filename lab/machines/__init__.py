"""Machine back ends of the lab: what a Metal device is made of once it is provisioned.

`base` is the seam; `libvirt` boots emulated machines, `simulated` walks the same protocols without an operating system.
"""
