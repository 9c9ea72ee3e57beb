"""Client for image registries, for the checks before an installation: does an image exist, and can it be pulled?

Sources: the OCI distribution specification (manifests and blobs), Docker's token authentication
(distribution/distribution, docs/spec/auth), containers-auth.json(5) (how accounts are chosen),
containers-registries.conf(5) (mirrors).
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from metal_ipi.provider.backoff import Backoff
from metal_ipi.provider.errors import RemoteError
from metal_ipi.provider.web import causes, retry_after

if TYPE_CHECKING:
    import httpx

_AT_ONCE = 8
"""Maximum number of parallel requests. Some registries refuse more."""
_PATIENCE = 15.0
"""Seconds that a request is retried while it fails with an error that may be transient."""
_LARGEST = 64 << 20
"""Maximum size of a downloaded layer, in bytes."""
_MANIFESTS = ", ".join(
    (
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.docker.distribution.manifest.v2+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
    )
)
_REFERENCE = re.compile(
    r"(?P<registry>[A-Za-z0-9.-]+(:\d+)?|\[[0-9a-fA-F:]+\](:\d+)?)/(?P<path>[a-z0-9._/-]+?)"
    r"(:(?P<tag>[\w.-]+))?(@(?P<digest>sha256:[0-9a-f]{64}))?"
)
_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True, kw_only=True)
class Image:
    """The name of an image, in its parts."""

    registry: str
    """Host, with a port if the name has one."""
    path: str
    """Repository within the registry."""
    reference: str
    """Digest or tag."""

    @classmethod
    def parse(cls, text: str) -> Image | None:
        """Parses a name with registry, repository and digest or tag; None for any other text."""
        found = _REFERENCE.fullmatch(text)
        reference = (found["digest"] or found["tag"]) if found is not None else None
        if found is None or reference is None:
            return None
        return cls(registry=found["registry"], path=found["path"], reference=reference)

    @property
    def repository(self) -> str:
        """Registry and repository, without digest or tag."""
        return f"{self.registry}/{self.path}"

    @property
    def by_digest(self) -> bool:
        """Whether the image is named by its digest."""
        return self.reference.startswith("sha256:")

    def places(self, mirrors: Mapping[str, Sequence[str]]) -> Iterator[Image]:
        """Yields where nodes look for the image, in their order: the mirrors of the longest matching source, and then
        its own registry. Mirrors are only used for images that are named by digest."""
        matching = [source for source in mirrors if f"{self.repository}/".startswith(f"{source}/")]
        if self.by_digest and matching:
            source = max(matching, key=len)
            for mirror in mirrors[source]:
                registry, _, path = f"{mirror}{self.repository.removeprefix(source)}".partition("/")
                yield replace(self, registry=registry, path=path)
        yield self


class Registries:
    """All registries: one HTTP client, and the accounts of the pull secret."""

    def __init__(self, client: httpx.AsyncClient, pull_secret: str) -> None:
        self._client = client
        self._accounts = _accounts(pull_secret)
        self._tokens: dict[tuple[str, str], str] = {}
        self._some = asyncio.Semaphore(_AT_ONCE)

    async def has(self, image: Image) -> None:
        """Checks that an image can be pulled. Raises RemoteError with the reason if not."""
        await self._ask("HEAD", image, f"manifests/{image.reference}")

    async def manifest(self, image: Image, architecture: str) -> Mapping[str, Any]:
        """The manifest of an image; for an image with several architectures (named as in Go), the one of
        `architecture`. Raises RemoteError."""
        found = _json(await self._ask("GET", image, f"manifests/{image.reference}"))
        for each in found.get("manifests", ()):
            if each.get("platform", {}).get("architecture") == architecture:
                return await self.manifest(replace(image, reference=each["digest"]), architecture)
        return found

    async def layer(self, image: Image, digest: str) -> bytes:
        """Downloads one layer, compressed as in the registry. Raises RemoteError."""
        return await self._ask("GET", image, f"blobs/{digest}")

    async def _ask(self, method: str, image: Image, what: str) -> bytes:
        url = f"https://{image.registry}/v2/{image.path}/{what}"
        key = image.registry, image.path
        headers = {"Accept": _MANIFESTS if what.startswith("manifests/") else "*/*"}
        async with self._some:
            status, told, content = await self._answer(method, url, {**headers, **self._authorized(key)})
            if status == 401 and (challenge := told.get("WWW-Authenticate")):
                self._tokens[key] = await self._authorization(image, challenge)
                status, _, content = await self._answer(method, url, {**headers, **self._authorized(key)})
        if status in (401, 403):
            known = "its account in the pull secret is refused" if self._account(image) else "the pull secret has none"
            raise RemoteError(f"it requires an account, and {known} (HTTP {status})")
        if status == 404:
            raise RemoteError("it does not exist (HTTP 404)")
        if status >= 400:
            raise RemoteError(f"HTTP {status}")
        return content

    def _authorized(self, key: tuple[str, str]) -> dict[str, str]:
        return {"Authorization": self._tokens[key]} if self._tokens.get(key) else {}

    async def _answer(self, method: str, url: str, headers: Mapping[str, str]) -> tuple[int, Mapping[str, str], bytes]:
        """Returns status, headers and content. Retries errors that may be transient, such as an overloaded registry."""
        backoff = Backoff(timeout=_PATIENCE)
        while True:
            answer = await self._one_answer(method, url, headers)
            if answer[0] < 500 and answer[0] != 429:
                return answer
            if backoff.over:
                return answer
            await backoff.pause(min(retry_after(answer[1]), backoff.left))

    async def _one_answer(
        self, method: str, url: str, headers: Mapping[str, str]
    ) -> tuple[int, Mapping[str, str], bytes]:
        import httpx

        try:
            async with self._client.stream(method, url, headers=headers) as answer:
                content = bytearray()
                async for part in answer.aiter_bytes():
                    content += part
                    if len(content) > _LARGEST:
                        raise RemoteError(f"it sends more than {_LARGEST >> 20} MiB")
        except httpx.HTTPError as error:
            if any("CERTIFICATE_VERIFY_FAILED" in str(each) for each in causes(error)):
                raise RemoteError(f"its certificate is not trusted ({error})") from None
            raise RemoteError(f"it does not answer ({str(error) or type(error).__name__})") from None
        return answer.status_code, answer.headers, bytes(content)

    async def _authorization(self, image: Image, challenge: str) -> str:
        """The value of the `Authorization` header that the registry's challenge asks for: the account itself, or a
        token that a token service issues for it."""
        account = self._account(image)
        basic = {"Authorization": f"Basic {account}"} if account else {}
        scheme, _, words = challenge.partition(" ")
        if scheme.lower() != "bearer":
            return basic.get("Authorization", "")
        told = dict(_CHALLENGE.findall(words))
        realm = told.pop("realm", "")
        if not realm.startswith("https://"):
            raise RemoteError("it requires a token of a service that does not use https")
        query = {"scope": f"repository:{image.path}:pull", **{k: v for k, v in told.items() if k == "service"}}
        url = str(self._client.build_request("GET", realm, params=query).url)
        status, _, content = await self._answer("GET", url, basic)
        if status >= 400:
            return basic.get("Authorization", "")  # the registry refuses this, and the caller reports it
        answer = _json(content)
        return f"Bearer {answer.get('token') or answer.get('access_token') or ''}"

    def _account(self, image: Image) -> str | None:
        """The account whose name is the longest prefix of the image's repository; None if there is none."""
        places = [place for place in self._accounts if f"{image.repository}/".startswith(f"{place}/")]
        return self._accounts[max(places, key=len)] if places else None


def _accounts(pull_secret: str) -> dict[str, str]:
    auths = json.loads(pull_secret).get("auths", {})
    found: dict[str, str] = {}
    for place, each in auths.items():
        name = place.removeprefix("https://").removesuffix("/")
        if "auth" in each:
            found[name] = each["auth"]
        elif "username" in each:
            found[name] = base64.b64encode(f"{each['username']}:{each.get('password', '')}".encode()).decode()
    return found


def _json(content: bytes) -> Mapping[str, Any]:
    try:
        found: Any = json.loads(content)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise RemoteError("its answer is not JSON")
    return found  # pyright: ignore[reportUnknownVariableType]
