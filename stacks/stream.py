"""Gets the stream metadata that the settings refer to: the only network access before resources are declared."""

from __future__ import annotations

from collections.abc import Sequence

from metal_ipi.components.boot.stream import Artifact, PxeArtifacts, StreamError, pxe_artifacts
from metal_ipi.stacks.model import Settings
from metal_ipi.stacks.sections.base import REHEARSAL
from metal_ipi.stacks.sections.forms import PROJECT

_TIMEOUT = 20.0
_REHEARSAL_URL = "https://rehearsal.invalid/boot"


def boot_artifacts(settings: Settings) -> PxeArtifacts:
    """The artifacts of the stack's stream, to boot and to install. Raises StreamError with the setting to look at."""
    boot = settings.boot
    if boot.stream_file is not None:
        path = PROJECT / boot.stream_file
        try:
            text = path.read_text()
        except OSError as error:
            raise StreamError(f"boot.streamFile '{boot.stream_file}' cannot be read: {error.strerror}") from None
        return _parse(text, f"boot.streamFile '{boot.stream_file}'", settings)
    if boot.stream_url is not None:
        return _parse(
            _fetch(boot.stream_url, settings.artifacts.authorities), f"boot.streamUrl {boot.stream_url}", settings
        )
    unknown = Artifact(url=_REHEARSAL_URL, sha256="0" * 64)
    return PxeArtifacts(release=REHEARSAL, kernel=unknown, initramfs=unknown, rootfs=unknown, disk=unknown, iso=unknown)


def _fetch(url: str, authorities: Sequence[str]) -> str:
    """Fetch the document. Its server may be the boot server, with a certificate from a private certificate
    authority."""
    import httpx

    trust = httpx.create_ssl_context()
    for each in authorities:
        trust.load_verify_locations(cadata=each)
    try:
        response = httpx.get(url, timeout=_TIMEOUT, follow_redirects=True, verify=trust)
        response.raise_for_status()
    except httpx.HTTPError as error:
        raise StreamError(f"boot.streamUrl {url} cannot be fetched: {error}") from None
    return response.text


def _parse(text: str, where: str, settings: Settings) -> PxeArtifacts:
    try:
        artifacts = pxe_artifacts(text, settings.boot.architecture)
    except StreamError as error:
        raise StreamError(f"{where}: {error}") from None
    install = settings.boot.install
    if install is not None and install.image == "stream" and artifacts.disk is None:
        raise StreamError(
            f"{where} names no disk image (artifacts.metal.formats.raw.*), which boot.install.image 'stream' needs; "
            "set it to 'live' to install the image that the live system contains"
        )
    live = settings.platform.live_iso_machines
    if live and artifacts.iso is None:
        raise StreamError(
            f"{where} names no live ISO (artifacts.metal.formats.iso.disk), which bootMethod 'live-iso' of"
            f" {', '.join(live)} needs; use another bootMethod"
        )
    return artifacts
