"""Can the images of the release be pulled? A real registry, or one that wants tokens."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Generator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import httpx
import pytest

from metal_ipi.provider.errors import RemoteError
from metal_ipi.provider.preflight.registries import Image, Registries
from tests.provider import registry
from tests.provider.preflight.asking import NOTHING_ORDERED, ask, of, the

_SOURCE = "quay.invalid/openshift/release"
_LIST = "release-manifests/image-references"


@pytest.fixture(scope="module")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Generator[registry.Registry, None, None]:
    """A registry with a release image, and one of the two that it names."""
    if registry.PROGRAM is None:
        pytest.skip("docker-registry is not installed (apt: docker-registry)")
    with registry.running(tmp_path_factory.mktemp("registry")) as found:
        yield found


@pytest.fixture
def release(mirror: registry.Registry, tmp_path: Path) -> str:
    """An installer of a release whose image is in the mirror, with `etcd` and without `lost`."""
    etcd = mirror.push("mirror/release", {"etcd": "1"}, "etcd")
    names = {"etcd": f"{_SOURCE}@{etcd}", "lost": f"{_SOURCE}@sha256:{'0' * 64}"}
    return _installer(tmp_path, mirror, names)


def _installer(folder: Path, mirror: registry.Registry, names: dict[str, str]) -> str:
    tags = [{"name": name, "from": {"kind": "DockerImage", "name": image}} for name, image in names.items()]
    digest = mirror.push("mirror/release", {_LIST: json.dumps({"kind": "ImageStream", "spec": {"tags": tags}})})
    program = folder / "openshift-install"
    said = f"openshift-install 4.19.0\nrelease image {_SOURCE}@{digest}\nrelease architecture amd64\n"
    program.write_text(f"#!/bin/sh\nprintf %s {shlex.quote(said)}\n")
    program.chmod(0o755)
    return str(program)


def _asked(
    mirror: registry.Registry,
    installer: str,
    *,
    again: bool = False,
    second: dict[str, Any] | None = None,
    release_image: str | None = None,
    **changes: Any,
) -> Any:
    registries = {"pullSecret": mirror.pull_secret(), "ca": mirror.ca, **changes}
    values = {
        **NOTHING_ORDERED,
        "installer": installer,
        "version": "4.19.0",
        "images": True,
        **({"releaseImage": release_image} if release_image else {}),
        "mirrors": [
            {"source": "quay.invalid/openshift", "mirrors": [f"{mirror.name}/mirror"]},
            *([second] if second else []),
        ],
    }
    config = {"registries": {key: value for key, value in registries.items() if value is not None}}
    found = asyncio.run(ask(config, values, again=again))
    assert registry.PASSWORD not in str(found)
    return found


def test_all_images_are_in_the_mirror(mirror: registry.Registry, tmp_path: Path) -> None:
    etcd = mirror.push("mirror/release", {"etcd": "1"}, "etcd")
    found = _asked(mirror, _installer(tmp_path, mirror, {"etcd": f"{_SOURCE}@{etcd}"}))
    assert f"the release image and the 1 that it names can be pulled: {mirror.name}" in the(found, "images", "ok")


def test_the_release_image_may_be_another_than_the_installers(mirror: registry.Registry, tmp_path: Path) -> None:
    digest = mirror.push("mirror/other", {_LIST: json.dumps({"spec": {"tags": []}})})
    installer = _installer(tmp_path, mirror, {"lost": f"{_SOURCE}@sha256:{'0' * 64}"})
    found = _asked(mirror, installer, release_image=f"quay.invalid/openshift/other@{digest}")
    assert "the release image and the 0 that it names can be pulled" in the(found, "images", "ok")


def test_a_source_may_be_named_twice(mirror: registry.Registry, tmp_path: Path) -> None:
    etcd = mirror.push("mirror/release", {"etcd": "1"}, "etcd")
    installer = _installer(tmp_path, mirror, {"etcd": f"{_SOURCE}@{etcd}"})
    second = {"source": "quay.invalid/openshift", "mirrors": [f"{mirror.name}/elsewhere"]}
    the(_asked(mirror, installer, second=second), "images", "ok")


def test_images_that_the_mirror_lacks_are_named(mirror: registry.Registry, release: str) -> None:
    told = the(_asked(mirror, release), "images", "error")
    assert (
        f"1 of 2 images of the release cannot be pulled (lost): {mirror.name}/mirror/release: it does not exist" in told
    )
    assert f"; {_SOURCE}: it does not answer (" in told, "where they come from is asked, too"
    the(_asked(mirror, release, again=True), "images", "warning")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"ca": None}, "its certificate is not trusted"),
        ({"pullSecret": '{"auths": {}}'}, "it requires an account, and the pull secret has none (HTTP 401)"),
        ({"pullSecret": "wrong"}, "it requires an account, and its account in the pull secret is refused (HTTP 401)"),
    ],
)
def test_what_keeps_us_out_is_told(changes: dict[str, Any], told: str, mirror: registry.Registry, release: str) -> None:
    if changes.get("pullSecret") == "wrong":
        changes = {"pullSecret": mirror.pull_secret("wrong")}
    said = the(_asked(mirror, release, **changes), "images", "error")
    assert f"the release image {_SOURCE}@sha256:" in said and told in said and "additionalTrustBundle" in said


def test_without_an_installer_that_is_said(mirror: registry.Registry) -> None:
    assert "there is no installer here" in the(_asked(mirror, "/nowhere/openshift-install"), "images", "warning")


def test_nobody_is_asked_where_that_is_not_wanted() -> None:
    assert not of(asyncio.run(ask({}, {**NOTHING_ORDERED, "installer": "/nowhere"})), "images")


def test_mirrors_of_the_longest_source_come_first() -> None:
    image = Image.parse(f"quay.io:443/a/b/c@sha256:{'1' * 64}")
    assert image is not None
    mirrors = {
        "quay.io:443": ["m.test"],
        "quay.io:443/a": ["m.test/x", "n.test/y"],
        "quay.io:443/a/b/cd": ["wrong.test"],
    }
    assert [each.repository for each in image.places(mirrors)] == ["m.test/x/b/c", "n.test/y/b/c", "quay.io:443/a/b/c"]
    tagged = Image.parse("quay.io:443/a/b:4.19")
    assert tagged is not None and list(tagged.places(mirrors)) == [tagged], "mirrors are for digests"
    both = Image.parse(f"quay.io/a/b:4.19@sha256:{'1' * 64}")
    assert both is not None and (both.path, both.reference) == ("a/b", f"sha256:{'1' * 64}")
    assert Image.parse("busybox") is Image.parse("quay.io/a/b") is None


@pytest.mark.usefixtures("no_waiting")
@pytest.mark.parametrize(("failures", "told"), [([429, 503], None), ([502] * 99, "HTTP 502")])
async def test_a_registry_that_has_too_much_to_do_is_asked_again(failures: list[int], told: str | None) -> None:
    left = iter(failures)
    transport = httpx.MockTransport(lambda request: httpx.Response(next(left, 200), headers={"Retry-After": "1"}))
    async with httpx.AsyncClient(transport=transport) as client:
        with pytest.raises(RemoteError, match=told) if told else nullcontext():
            await Registries(client, '{"auths": {}}').has(Image(registry="quay.test", path="a", reference="latest"))
    assert told or next(left, None) is None


async def test_a_token_is_had_with_the_account_that_matches_longest() -> None:
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        if request.url.host == "auth.test":
            good = request.headers["Authorization"] == "Basic aW5uZXI="
            return httpx.Response(200, json={"token": "t1"}) if good else httpx.Response(401)
        if request.headers.get("Authorization") == "Bearer t1":
            return httpx.Response(200)
        challenge = 'Bearer realm="https://auth.test/token",service="quay"'
        return httpx.Response(401, headers={"WWW-Authenticate": challenge})

    async def run(secret: dict[str, Any]) -> None:
        async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
            registries = Registries(client, json.dumps({"auths": secret}))
            image = Image(registry="quay.test", path="a/b", reference="latest")
            await registries.has(image)
            await registries.has(image)

    await run({"https://quay.test/": {"auth": "b3V0ZXI="}, "quay.test/a": {"auth": "aW5uZXI="}})
    assert [request.url.host for request in asked] == ["quay.test", "auth.test", "quay.test", "quay.test"]
    assert dict(asked[1].url.params) == {"scope": "repository:a/b:pull", "service": "quay"}
    with pytest.raises(RemoteError, match="its account in the pull secret is refused"):
        await run({"quay.test": {"auth": "b3V0ZXI="}})
