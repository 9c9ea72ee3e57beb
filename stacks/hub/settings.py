"""Reads and checks the settings of a hub's stack. `stacks.hub.sections` has the tree itself."""

from __future__ import annotations

from cryptography import x509

from metal_ipi.components.provisioning import configuration
from metal_ipi.stacks.hub import sections
from metal_ipi.stacks.hub.arguments import arguments
from metal_ipi.stacks.hub.sections import HubSettings
from metal_ipi.stacks.platforms.section import Needed, at
from metal_ipi.stacks.problems import Found, Problem, problems_of
from metal_ipi.stacks.reading import Kind
from metal_ipi.stacks.sections.base import certificates


def _conflicts(settings: HubSettings) -> Found:
    """Settings that contradict each other."""
    given, args = settings.provisioning, arguments(settings)
    for section, name in configuration.clashes(args):
        yield (
            f"provisioning.extraConfig.{section}.{name}",
            given.extra_config[section][name],
            "the service sets it itself, or it is a credential",
            "remove it; there is another setting for it, or the program derives it",
        )
    if given.dhcp is not None and given.images.dhcp is None and not settings.rehearsal:
        yield ("provisioning.images.dhcp", "(not set)", "provisioning.dhcp needs it", "name an image with dnsmasq")
    if isinstance(given.tls, sections.GivenTls):
        yield from _certificate(given.tls, configuration.certificate_names(args))


def _certificate(tls: sections.GivenTls, names: list[str]) -> Found:
    own = certificates(tls.certificate)[0]
    try:
        alternatives = own.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        known = {*alternatives.get_values_for_type(x509.DNSName)}
        known |= {str(each) for each in alternatives.get_values_for_type(x509.IPAddress)}
    except x509.ExtensionNotFound:
        known = set[str]()
    if missing := [name for name in names if name not in known]:
        yield (
            "provisioning.tls.certificate",
            "(a certificate)",
            f"the certificate is not valid for {', '.join(missing)}",
            "give a certificate that is also valid for these names and addresses",
        )


def conflicts(settings: HubSettings) -> list[Problem]:
    """All conflicts between settings of a hub."""
    return problems_of(_conflicts(settings))


HUB = Kind(
    model=HubSettings,
    needed=(
        Needed(path="hub.kubeconfig"),
        Needed(path="provisioning.images.ironic"),
        Needed(
            path="provisioning.images.files",
            when=lambda tree: at(tree, "provisioning.operator") is None or bool(at(tree, "provisioning.imageCache")),
        ),
        Needed(
            path="provisioning.images.database",
            when=lambda tree: at(tree, "provisioning.database.type") in (None, "mariadb"),
        ),
        Needed(
            path="provisioning.access.address",
            when=lambda tree: at(tree, "provisioning.access.type") in (None, "node-port"),
        ),
        Needed(path="provisioning.tls.privateKey", when=lambda tree: at(tree, "provisioning.tls.type") == "given"),
        Needed(
            path="provisioning.database.password",
            when=lambda tree: at(tree, "provisioning.database.type") == "external",
        ),
    ),
    conflicts=conflicts,
)
"""The kind of stack of a hub."""
