"""Fields of install-config.yaml that a site can set, under the installer's own names.

Rules: openshift/installer, pkg/types/validation/installconfig.go and pkg/validate/validate.go. What the installer would
refuse is refused here first, together with all other problems.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Any, Literal, cast
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, field_validator, model_validator

from metal_ipi.components.install.install_config import RENDERED
from metal_ipi.stacks.problems import Found
from metal_ipi.stacks.sections.base import REHEARSAL, PublicPem, Section, matching, some, wrong
from metal_ipi.stacks.sections.forms import is_host
from metal_ipi.stacks.sections.networking import Networking

_ACCOUNT = re.compile(r"([A-Za-z0-9._~!$&'()*+,;=:-]|%[0-9A-Fa-f]{2})*")
"""What Go accepts before the @ of a URL (net/url, validUserinfo)."""
_REPOSITORY = re.compile(r"(?=.{1,255}$)(?P<host>[A-Za-z0-9.-]+(:[0-9]{1,5})?)(/[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*)*")
_CAPABILITY = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,62}")
_SET = re.compile(r"None|vCurrent|v4\.(1[1-9]|[2-9][0-9])")
_OPTIONAL_SINCE = dict(ImageRegistry=14, OperatorLifecycleManager=15, CloudCredential=15, CloudControllerManager=16)
"""The first 4.x in which a capability is optional; the capability sets of earlier releases do not include it.
Capabilities that are not listed here are in all sets except None (openshift/api, config/v1/types_cluster_version.go).
"""


def _repository(value: str) -> str:
    found = _REPOSITORY.fullmatch(value)
    if found is None or not is_host(found["host"].partition(":")[0]):
        raise wrong(
            "it is not a repository of a registry",
            "give host and path without tag and digest, e.g. registry.example.com:5000/openshift/release",
        )
    return value


Repository = Annotated[str, AfterValidator(_repository)]
"""A repository of container images: `host[:port][/path]`."""


Gate = Annotated[
    str,
    matching(
        r"[A-Za-z][A-Za-z0-9]*=(true|false)",
        "it is not a setting of a feature gate",
        "give <name>=true or <name>=false",
    ),
]
"""A feature gate, switched on or off."""


def _proxy_of(*schemes: str) -> AfterValidator:
    def is_one(text: str) -> bool:
        account, _, _ = text.partition("://")[2].rpartition("@")
        try:
            parts = urlsplit(text)
            port = parts.port
        except ValueError:
            return False
        is_plain = text.isprintable() and " " not in text and _ACCOUNT.fullmatch(account) is not None
        return is_plain and parts.scheme in schemes and is_host(parts.hostname or "") and port != 0

    def check(value: SecretStr) -> SecretStr:
        text = value.get_secret_value()
        if text != REHEARSAL and not is_one(text):
            allowed = " or ".join(f"{scheme}://" for scheme in schemes)
            raise wrong(
                "it is not a URL of a proxy",
                f"give {allowed}[user:password@]host[:port], with % and two digits for special characters",
            )
        return value

    return AfterValidator(check)


class Proxy(Section):
    """The proxy through which the cluster's nodes reach other networks."""

    http_proxy: Annotated[SecretStr, _proxy_of("http")] | None = Field(
        default=None, description="the URL of the proxy for HTTP; a secret if it contains an account"
    )
    https_proxy: Annotated[SecretStr, _proxy_of("http", "https")] | None = Field(
        default=None, description="the URL of the proxy for HTTPS; a secret if it contains an account"
    )
    no_proxy: str | None = Field(
        default=None,
        description=(
            "domains, addresses and networks that are reached without the proxy, separated by commas; the "
            "installer adds the cluster's own"
        ),
    )

    @field_validator("no_proxy")
    @classmethod
    def _entries(cls, value: str | None) -> str | None:
        for entry in () if value in (None, "*") else (value or "").split(","):
            try:
                ipaddress.ip_network(entry, strict=False)
                good = "/" not in entry or entry.rpartition("/")[2].isdigit()
            except ValueError:
                good = is_host(entry.removeprefix(".")) and entry == entry.lower()
            if not good:
                raise wrong(
                    f"{entry!r} is not a domain, address or network",
                    "give them in lower case, with commas and no spaces between, e.g. .example.com,192.0.2.0/24; or *"
                    " alone",
                )
        return value

    @model_validator(mode="after")
    def _any(self) -> Proxy:
        if self.http_proxy is None and self.https_proxy is None:
            raise wrong("it names no proxy", "give httpProxy, httpsProxy or both")
        return self


class ImageDigestSource(Section):
    """Mirrors of images that are referred to by digest."""

    source: Repository = Field(description="the repository in the images' names, without tag and digest")
    mirrors: Annotated[tuple[Repository, ...], AfterValidator(some)] = Field(
        strict=False, description="repositories with the same images, in the order in which they are tried"
    )


class Capabilities(Section):
    """OpenShift's optional capabilities that are installed."""

    baseline_capability_set: str = Field(
        default="vCurrent", description="a set of capabilities: None, vCurrent, or that of a release, e.g. v4.18"
    )
    additional_enabled_capabilities: tuple[str, ...] = Field(
        default=(), strict=False, description="further single capabilities, e.g. NodeTuning"
    )

    @field_validator("baseline_capability_set")
    @classmethod
    def _set(cls, value: str) -> str:
        if not _SET.fullmatch(value):
            raise wrong("it is not a set of capabilities", "give None, vCurrent, or v and a minor release, e.g. v4.18")
        return value

    @field_validator("additional_enabled_capabilities")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for each in value:
            if not _CAPABILITY.fullmatch(each):
                raise wrong(f"{each!r} is not a name of a capability", "give e.g. NodeTuning")
        return value

    def lacks(self, name: str, *, minor: int) -> bool:
        """Whether a cluster of release 4.`minor` is installed without a capability."""
        found = self.baseline_capability_set
        if name in self.additional_enabled_capabilities or found == "vCurrent":
            return False
        return found == "None" or int(found.removeprefix("v4.")) < _OPTIONAL_SINCE.get(name, 0) <= minor


class External(Section):
    """A platform that OpenShift does not know, with a cloud controller manager of its own."""

    platform_name: Annotated[
        str, matching(r"[!-~]([ -~]{0,61}[!-~])?", "it is not a name", "give up to 63 characters of ASCII")
    ] = Field(default="Unknown", description="its name in the cluster; nothing depends on it")
    cloud_controller_manager: Literal["", "External"] = Field(
        default="",
        description=(
            "External: each node is tainted until a cloud controller manager has initialized it; that must be "
            "in install.manifests"
        ),
    )


class ClusterPlatform(Section):
    """OpenShift's platform, if it is neither none nor baremetal."""

    external: External = Field(description="a platform that OpenShift does not know")


class InstallConfig(Section):
    """Fields of install-config.yaml."""

    networking: Networking = Field(default_factory=Networking, description="networks inside the cluster")
    proxy: Proxy | None = Field(default=None, description="not set: the nodes use no proxy")
    additional_trust_bundle: PublicPem | None = Field(
        default=None, description="certificates (PEM) that the nodes trust, e.g. of a mirror registry or a proxy"
    )
    additional_trust_bundle_policy: Literal["Proxyonly", "Always"] | None = Field(
        default=None, description="when they are trusted: Proxyonly (only with a proxy) or Always; not set: Proxyonly"
    )
    image_digest_sources: tuple[ImageDigestSource, ...] = Field(
        default=(), strict=False, description="mirrors of image repositories"
    )
    capabilities: Capabilities | None = Field(default=None, description="not set: all that the release has")
    feature_set: Literal["TechPreviewNoUpgrade", "DevPreviewNoUpgrade", "CustomNoUpgrade"] | None = Field(
        default=None,
        description="a set of features that are not ready for production; such a cluster cannot be upgraded",
    )
    feature_gates: tuple[Gate, ...] = Field(
        default=(), strict=False, description="single ones, `<name>=true` or `=false`, with featureSet CustomNoUpgrade"
    )
    platform: ClusterPlatform | None = Field(
        default=None, description="not set: none, or baremetal where that keeps addresses (apiAddress.type platform)"
    )
    cpu_partitioning_mode: Literal["None", "AllNodes"] | None = Field(
        default=None, description="AllNodes: nodes can reserve processors for OpenShift's own processes"
    )
    other: dict[str, Any] = Field(
        default_factory=dict,
        description="any other field of install-config.yaml; only the installer checks it",
    )

    @property
    def fields(self) -> dict[str, Any]:
        """The fields, as in install-config.yaml; secret."""
        given = self.model_dump(by_alias=True, exclude_none=True, exclude={"other", "platform"})
        return {**{name: _plain(value) for name, value in given.items() if value != ()}, **self.other}

    @property
    def rendered_platform(self) -> dict[str, Any] | None:
        """The field `platform`, as in install-config.yaml; None if other settings determine it."""
        return None if self.platform is None else self.platform.model_dump(by_alias=True)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that must not be shown."""
        given = (self.proxy.http_proxy, self.proxy.https_proxy) if self.proxy is not None else ()
        return tuple(each.get_secret_value() for each in given if each is not None)

    def contradictions(self) -> Found:
        """Path below `installConfig`, value, why and remedy of each contradiction."""
        for path, value, why, remedy in self.networking.contradictions():
            yield f"networking.{path}".rstrip("."), value, why, remedy
        if self.feature_gates and self.feature_set != "CustomNoUpgrade":
            yield (
                "featureGates",
                ", ".join(self.feature_gates),
                f"featureSet is {self.feature_set or 'not set'}",
                "set featureSet to CustomNoUpgrade, or take them out",
            )
        typed = {str(field.alias): f"set installConfig.{field.alias}" for field in type(self).model_fields.values()}
        for name, remedy in {**RENDERED, **typed}.items():
            if name in self.other:
                yield f"other.{name}", "[not shown]", "the program sets this field itself", remedy
        for kind, proxy in (
            ("httpProxy", self.proxy and self.proxy.http_proxy),
            ("httpsProxy", self.proxy and self.proxy.https_proxy),
        ):
            yield from self._inside(kind, proxy)

    def _inside(self, kind: str, proxy: SecretStr | None) -> Found:
        if proxy is None or proxy.get_secret_value() == REHEARSAL:
            return
        host = urlsplit(proxy.get_secret_value()).hostname or ""
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return
        for what, network in self.networking.inside.items():
            if address in ipaddress.ip_network(network):
                remedy = "give an address of the proxy outside of the cluster's networks"
                yield f"proxy.{kind}", host, f"it is in {what}, {network}", remedy


def _plain(value: Any) -> Any:
    """The value as YAML data, with secrets in clear text."""
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in cast("dict[str, Any]", value).items()}
    return [_plain(each) for each in cast("tuple[Any, ...]", value)] if isinstance(value, tuple) else value
