"""The wheel: built and installed without network, used from elsewhere, beside a program with a folder `components`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from metal_ipi.stacks.sections.base import Section

pytestmark = pytest.mark.programs

_ROOT = Path(__file__).resolve().parents[2]
_SOURCES = (
    *("cluster_api", "components", "metal_ipi", "provider", "stacks"),
    *("pyproject.toml", "requirements.txt", "requirements-cluster-api.txt", "setup.py"),
)
_PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")
_PROGRAM = """
import sys
import pulumi
from pulumi.runtime import mocks

class Answers(mocks.Mocks):
    def new_resource(self, args):
        print(args.typ)
        if args.typ == "metal-ipi:endpoints:ClusterDns":
            return "", args.inputs
        return f"{args.name}-id", {**args.inputs, "publicKey": "ssh-ed25519 AAAA", "records": {}}

    def call(self, args):
        raise AssertionError(args.token)

mocks.set_mocks(Answers())

from metal_ipi.cluster import Cluster
from metal_ipi.components.endpoints.dns import ClusterDns, ClusterDnsArgs
from metal_ipi.components.install.assets import driver
from metal_ipi.provider.types import ClusterKeys
import components

@pulumi.runtime.test
def declared():
    ClusterKeys("keys")
    dns = ClusterDns("dns", ClusterDnsArgs(
        domain="lab.test", zone="lab.test", ttl=30, control_plane={"cp-0.lab.test": "192.0.2.1"}, workers={}))
    return dns.api_url.apply(print)

declared()
ours = {name for name in sys.modules if name.split(".")[0] in ("components", "provider", "stacks")}
assert ours == {"components"} and components.MINE, ours
print(driver.__name__)
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the wheel's content is."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in _SOURCES:
        if (_ROOT / name).is_dir():
            shutil.copytree(_ROOT / name, source / name, symlinks=True)
        else:
            shutil.copy(_ROOT / name, source / name)
    offline = ("--no-index", "--no-deps", "--quiet")
    _run(*_PIP, "wheel", *offline, "--no-build-isolation", "--wheel-dir", str(folder), str(source))
    (wheel,) = folder.glob("metal_ipi-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.split("/")[0] for name in archive.namelist()}
        assert tops == {"metal_ipi", f"{wheel.name.split('-py3')[0]}.dist-info"}
        assert "metal_ipi/provider/schema.json" in archive.namelist()
    _run(*_PIP, "install", *offline, "--target", str(folder / "site"), str(wheel))
    return folder / "site"


def test_a_program_elsewhere_uses_it(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "components").mkdir()
    (tmp_path / "components" / "__init__.py").write_text("MINE = True\n")
    (tmp_path / "program.py").write_text(_PROGRAM)
    printed = _run(sys.executable, "program.py", cwd=tmp_path, path=installed).splitlines()
    assert {"metal-ipi:index:ClusterKeys", "metal-ipi:index:DnsRecords", "https://api.lab.test:6443"} <= set(printed)
    assert printed[-1] == "metal_ipi.components.install.driver"


def test_everything_in_it_can_be_imported(installed: Path, tmp_path: Path) -> None:
    modules = sorted(
        ".".join(path.relative_to(installed).with_suffix("").parts).removesuffix(".__init__")
        for path in (installed / "metal_ipi").rglob("*.py")
    )
    assert len(modules) > 100
    _run(sys.executable, "-c", "".join(f"import {name}\n" for name in modules), cwd=tmp_path, path=installed)
    assert Section.__module__ in modules


def test_the_plugin_starts(installed: Path, tmp_path: Path) -> None:
    script = installed / "bin" / "pulumi-resource-metal-ipi"
    process = subprocess.Popen(
        [sys.executable, str(script)], cwd=tmp_path, env=_environment(installed), stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None and int(process.stdout.readline()) > 0
    finally:
        process.terminate()
        process.communicate()


def _environment(path: Path | None) -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return plain if path is None else {**plain, "PYTHONPATH": str(path)}


def _run(*command: str, cwd: Path | None = None, path: Path | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, env=_environment(path), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
