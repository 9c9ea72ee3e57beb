"""The component library: OpenShift on bare metal, composed of Pulumi ComponentResources.

    machines/   the platform seam: one Machine contract, one module per platform
    boot/       what machines boot: stream metadata, iPXE script, kernel arguments, Ignition, SSH host keys
    install/    the installer's assets, the ephemeral bootstrap machine, the gates between the phases
    cluster/    pools of control plane machines and workers
    endpoints/  the cluster's names
    checks/     node-side checks over SSH

Rendering is pure functions from data to text; components only wire. Nothing here reads `pulumi.Config`.
"""
