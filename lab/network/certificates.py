"""The lab's two certificate authorities and the certificates of its servers.

One stands for the authorities that every system trusts: names of the outside world have certificates of it. The other
is the facility's own: it signed the boot server's certificate, and no machine trusts it unless it is told to.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path

import trustme

from lab.layout import Layout, write_private
from lab.network import plan

_TEN_YEARS = datetime.timedelta(days=3650)


def authority(name: str) -> trustme.CA:
    """A certificate authority that signs no other authorities."""
    return trustme.CA(path_length=0, organization_name="metal-ipi lab", organization_unit_name=name)


def write(place: Path, made: trustme.LeafCert) -> None:
    """Write a certificate and its key to `<place>.crt` and `<place>.key`."""
    write_private(place.with_name(f"{place.name}.key"), made.private_key_pem.bytes())
    write_private(place.with_name(f"{place.name}.crt"), made.cert_chain_pems[0].bytes())


def ensure(layout: Layout, bmcs: Mapping[str, str] | None = None) -> None:
    """Make the authorities and the servers' certificates, unless they are there: they must outlive a power failure.

    `bmcs` are names and addresses of a rack's BMCs. Each gets a certificate of its own, `<name>`, and wrong ones for
    rehearsals: `<name>.expired`, `<name>.early` (not valid yet), `<name>.other-name` and `<name>.other-ca`.
    """
    last = layout.tls / f"{tuple(plan.TLS_NAMES)[-1]}.crt"
    if layout.ca.exists() and layout.facility_ca.exists() and last.exists():
        return
    # The authorities' keys are not kept: nothing else will ever be signed by them.
    public, facility = authority("public authority"), authority("facility authority")
    now = datetime.datetime.now(datetime.UTC)
    for name, address in (bmcs or {}).items():
        for variant, made in {
            name: public.issue_cert(address),
            f"{name}.expired": public.issue_cert(address, not_after=now - _TEN_YEARS),
            f"{name}.early": public.issue_cert(address, not_before=now + _TEN_YEARS),
            f"{name}.other-name": public.issue_cert(plan.SOS),
            f"{name}.other-ca": authority("public authority").issue_cert(address),
        }.items():
            write(layout.tls / variant, made)
    inside = {name: plan.TLS_NAMES[name] for name in plan.OF_THE_SITE}
    outside = {name: address for name, address in plan.TLS_NAMES.items() if name not in inside}
    for signer, servers in ((public, outside), (facility, inside)):
        # One certificate for all: a server has several of the names.
        shared = signer.issue_cert(*servers, *sorted(set(servers.values())))
        for name in servers:
            write(layout.tls / name, shared)
    write_private(layout.ca, public.cert_pem.bytes())
    write_private(layout.facility_ca, facility.cert_pem.bytes())
