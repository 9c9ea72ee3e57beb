"""OpenShift's own programs, built once per user from their Go modules: the installer and the machine config programs.

Each folder with a go.mod and a go.sum pins the programs of one Go module. None of their code is kept in this
repository.
"""

from __future__ import annotations

RELEASE = "4.19.0"
"""What the programs call themselves, and the release that the lab installs with them."""
