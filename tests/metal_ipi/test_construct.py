"""Components by Construct, under the real engine: what programs in YAML, TypeScript, Go and C# do."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import asyncssh
import pulumi
import pytest
from pulumi import automation

from tests.metal_ipi.tree import tree
from tests.real_engine import ENGINE, make_stack, resources

_ROOT = Path(__file__).resolve().parents[2]
_GOLDEN = _ROOT / "tests" / "golden" / "urns-da11.txt"

pytestmark = [
    pytest.mark.engine,
    # The Automation API leaves the event loop of an inline program open.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.skipif(not ENGINE, reason="no Pulumi engine on PATH or in METAL_IPI_ENGINE"),
]


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    """The lab's plug-ins; and what the Automation API leaves is collected while it is forgiven."""
    monkeypatch.setenv("PATH", os.pathsep.join([str(_ROOT / "lab" / "plugins"), os.environ["PATH"]]))
    yield
    gc.collect()


class _Remote(pulumi.ComponentResource):
    """What an SDK in any language has for a component: its name, its arguments, and the names of its outputs."""

    def __init__(
        self,
        token: str,
        name: str,
        props: Mapping[str, Any],
        outputs: tuple[str, ...] = (),
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(f"metal-ipi:{token}", name, {**dict.fromkeys(outputs), **props}, opts, remote=True)


class _Keys(pulumi.CustomResource):
    """Something that a preview does not know, and that is a secret in part."""

    publicKey: pulumi.Output[str]
    privateKey: pulumi.Output[str]

    def __init__(self, name: str) -> None:
        super().__init__("metal-ipi:index:ClusterKeys", name, {"publicKey": None, "privateKey": None})


def _previewed(folder: Path, program: Callable[[], None]) -> set[str]:
    urns: set[str] = set()

    def note(event: automation.EngineEvent) -> None:
        if event.resource_pre_event is not None:
            urns.add(event.resource_pre_event.metadata.urn.split("::", 2)[2])

    make_stack(folder, program).preview(on_event=note)
    return urns


def test_a_cluster_has_the_resources_of_its_stack(tmp_path: Path) -> None:
    settings = tree()
    settings["artifacts"]["privateKey"] = asyncssh.generate_private_key("ssh-ed25519").export_private_key().decode()

    def program() -> None:
        token = pulumi.Output.secret(settings["platform"]["authToken"])
        platform = {**settings["platform"], "authToken": token}
        made = _Remote("index:Cluster", "metal", {**settings, "platform": platform}, ("api", "nodes"))
        pulumi.export("url", pulumi.get(made, "api")["url"])

    below = {f"metal-ipi:index:Cluster${urn}" for urn in _GOLDEN.read_text().split()}
    # The engine's own: the stack, and providers that nobody declares.
    own = re.compile(r"pulumi:pulumi:Stack::.*|pulumi:providers:[^$]*::default.*")
    urns = {urn for urn in _previewed(tmp_path, program) if not own.fullmatch(urn)}
    assert urns == {urn for urn in below if "::default" not in urn} | {"metal-ipi:index:Cluster::metal"}


def test_wrong_settings_are_told_by_property_and_nothing_is_made(tmp_path: Path) -> None:
    told = _refused(tmp_path, lambda: tree(clusterName="Bad_Name", workers={"cuont": 1}))
    assert "property clusterName" in told and "it is not a DNS label" in told
    assert "property workers.cuont" in told and "did you mean 'count'?" in told
    assert "swordfish" not in told


def test_a_wrong_secret_is_not_shown(tmp_path: Path) -> None:
    dns = {"type": "rfc2136", "server": "192.0.2.53", "tsig": {"name": "k.", "secret": "not base64: swordfish"}}
    told = _refused(tmp_path, lambda: {**tree(), "dns": pulumi.Output.secret(dns)})
    assert "dns.tsig.secret: it is not base64" in told and "swordfish" not in told


def test_settings_must_be_known(tmp_path: Path) -> None:
    told = _refused(tmp_path, lambda: {**tree(), "ssh": {"authorizedKeys": [_Keys("keys").publicKey]}})
    assert "property ssh.authorizedKeys[0]" in told and "is not known yet" in told


def _refused(folder: Path, settings: Callable[[], dict[str, Any]]) -> str:
    def program() -> None:
        _Remote("index:Cluster", "metal", settings())

    with pytest.raises(automation.CommandError) as caught:
        make_stack(folder, program).preview()
    return str(caught.value)


def test_names_of_machines_that_are_not_there_yet(tmp_path: Path) -> None:
    """Addresses may come of resources, and what is made of them depends on these and is as secret as they are."""

    def program() -> None:
        keys = _Keys("keys")
        given = {"cp-0.lab.test": keys.publicKey, "cp-1.lab.test": "192.0.2.1"}
        dns = _Remote(
            "endpoints:ClusterDns",
            "dns",
            {"domain": "lab.test", "ttl": 30, "controlPlane": given, "workers": {}},
            ("apiUrl", "needed"),
        )
        pulumi.export("url", pulumi.get(dns, "apiUrl"))
        pulumi.export("needed", pulumi.get(dns, "needed"))

    stack = make_stack(tmp_path, program)
    stack.preview()
    result = stack.up()
    assert result.outputs["url"].value == "https://api.lab.test:6443"
    assert "cp-1.lab.test. A 192.0.2.1" in result.outputs["needed"].value
    (own,) = [line for line in result.outputs["needed"].value if line.startswith("cp-0.")]
    assert own.startswith("cp-0.lab.test. A ssh-ed25519 ")
    assert resources(stack)["dns"]["type"] == "metal-ipi:endpoints:ClusterDns"
    assert set(stack.up().summary.resource_changes or {}) == {"same"}
    stack.destroy()
    assert resources(stack) == {}


_INSTALLER = """#!/bin/sh
[ "$1" = version ] && echo "openshift-install v4.21.3" && exit
cd "$4" && mkdir auth && printf swordfish-password >auth/kubeadmin-password
for file in bootstrap.ign worker.ign metadata.json; do echo "$file" >"$file"; done
cat >auth/kubeconfig <<'END'
{"clusters": [{"cluster": {"certificate-authority-data": "Y2E="}}],
 "users": [{"user": {"client-certificate-data": "Y2VydA==", "client-key-data": "a2V5"}}]}
END
"""


def test_assets_are_made_once_and_stay_secret(tmp_path: Path) -> None:
    installer = tmp_path / "openshift-install"
    installer.write_text(_INSTALLER)
    installer.chmod(0o755)
    props = {
        "installer": str(installer),
        "version": "4.21.3",
        "workDirectory": str(tmp_path / "assets"),
    }

    def program() -> None:
        config = pulumi.Output.secret("pullSecret: swordfish")
        made = _Remote(
            "install:InstallAssets",
            "assets",
            {**props, "installConfig": config},
            ("credentials", "kubeadminPassword"),
        )
        pulumi.export("credentials", pulumi.get(made, "credentials"))
        pulumi.export("password", pulumi.get(made, "kubeadminPassword"))

    stack = make_stack(tmp_path, program)
    outputs = stack.up().outputs
    assert outputs["credentials"].value == {"caPem": "ca", "clientCertPem": "cert", "clientKeyPem": "key"}
    assert outputs["password"].value == "swordfish-password" and outputs["password"].secret
    kept = [path.read_text() for path in (tmp_path / ".pulumi").rglob("*.json")]
    assert kept and not [text for text in kept if "swordfish" in text]


def test_a_component_that_is_none(tmp_path: Path) -> None:
    def program() -> None:
        _Remote("index:Clutser", "it", {})

    with pytest.raises(automation.CommandError, match="known are metal-ipi:endpoints:ClusterDns"):
        make_stack(tmp_path, program).preview()
