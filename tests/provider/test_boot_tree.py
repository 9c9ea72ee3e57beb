"""The boot tree on an SFTP host on loopback, and in a bucket as moto emulates it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from metal_ipi.components.boot.site import chain_script
from metal_ipi.provider import boot_tree, matchbox
from metal_ipi.provider.errors import InvalidInputs
from tests.provider.harness import settings_of
from tests.provider.test_configuration import S3, keys

ONE, TWO = "52:54:00:AA:BB:01", "52:54:00:aa:bb:02"


async def test_the_last_one_out_takes_the_chain_with_it(tmp_path: Path, artifact_host: dict[str, Any]) -> None:
    boot = tmp_path / "artifacts/boot"
    settings = settings_of(artifacts=artifact_host)
    assert not await boot_tree.published(settings, ONE)
    await boot_tree.withdraw(settings, ONE)
    await asyncio.gather(
        boot_tree.publish(settings, ONE, "#!ipxe one", "#!ipxe chain"),
        boot_tree.publish(settings, TWO, "#!ipxe two", "#!ipxe chain"),
    )
    assert {path.name: path.read_text() for path in boot.iterdir()} == {
        "boot.ipxe": "#!ipxe chain",
        "mac-52-54-00-aa-bb-01.ipxe": "#!ipxe one",
        "mac-52-54-00-aa-bb-02.ipxe": "#!ipxe two",
    }
    await boot_tree.withdraw(settings, ONE)
    assert (boot / "boot.ipxe").exists() and not await boot_tree.published(settings, ONE)
    assert await boot_tree.published(settings, TWO)
    # One comes while another goes: the chain stays for the one that came.
    await asyncio.gather(
        boot_tree.withdraw(settings, TWO), boot_tree.publish(settings, ONE, "#!ipxe one", "#!ipxe chain")
    )
    assert sorted(path.name for path in boot.iterdir()) == ["boot.ipxe", "mac-52-54-00-aa-bb-01.ipxe"]
    await boot_tree.withdraw(settings, ONE)
    assert not boot.exists()


async def test_strange_files_do_not_keep_the_chain_and_are_left_alone(
    tmp_path: Path, artifact_host: dict[str, Any]
) -> None:
    boot = tmp_path / "artifacts/boot"
    settings = settings_of(artifacts=artifact_host)
    await boot_tree.publish(settings, ONE, "#!ipxe one", "#!ipxe chain")
    (boot / "README").write_text("somebody's own")
    await boot_tree.withdraw(settings, ONE)
    assert [path.name for path in boot.iterdir()] == ["README"]


SCRIPT = """#!ipxe
# 9.8, platform metal
kernel https://mirror.test/vmlinuz initrd=main ignition.platform.id=metal metal-ipi.not-after=4000000000
initrd --name main https://mirror.test/initramfs
boot
"""


async def test_in_a_matchboxs_data(tmp_path: Path, artifact_host: dict[str, Any]) -> None:
    """As docs/matchbox.md of poseidon/matchbox shows profiles and groups."""
    settings = settings_of(artifacts={**artifact_host, "matchbox": "/data"})
    data = tmp_path / "data"
    (data / "groups").mkdir(parents=True, mode=0o755)
    (data / "groups/theirs.json").write_text("{}")
    with pytest.raises(InvalidInputs, match="Ironic's boot files do not lead there"):
        await boot_tree.publish(settings, ONE, SCRIPT, "#!ipxe chain", start=True)
    await boot_tree.publish(settings, ONE, SCRIPT, "#!ipxe chain")
    name = "metal-ipi-52-54-00-aa-bb-01"
    profile = json.loads((data / f"profiles/{name}.json").read_text())
    assert profile == {
        "id": name,
        "name": name,
        "boot": {
            "kernel": "https://mirror.test/vmlinuz",
            "initrd": ["--name main https://mirror.test/initramfs"],
            "args": ["initrd=main", "ignition.platform.id=metal", "metal-ipi.not-after=4000000000"],
        },
    }
    group = json.loads((data / f"groups/{name}.json").read_text())
    assert group == {"id": name, "name": name, "profile": name, "selector": {"mac": "52:54:00:aa:bb:01"}}
    # matchbox has to list them; nothing is in the boot tree.
    assert (data / "groups").stat().st_mode & 0o777 == 0o755 and not (tmp_path / "artifacts/boot").exists()
    digest = f"sha512-{hashlib.sha512(SCRIPT.encode()).hexdigest()}"
    assert await boot_tree.published(settings, ONE) == digest and not await boot_tree.published(settings, TWO)
    await boot_tree.withdraw(settings, ONE)
    await boot_tree.withdraw(settings, ONE)
    assert not await boot_tree.published(settings, ONE)
    assert [path.name for path in data.rglob("*") if path.is_file()] == ["theirs.json"]


def test_a_script_that_matchbox_cannot_render() -> None:
    with pytest.raises(InvalidInputs, match="no place for `chain`"):
        matchbox.profile("52-54-00-aa-bb-01", "#!ipxe\nchain x\n")


def test_the_chain_script_leads_to_scripts_as_they_are_named_and_to_nothing_else() -> None:
    name = boot_tree.script_name(ONE).replace(ONE.lower().replace(":", "-"), "${net0/mac:hexhyp}")
    assert re.findall(r"\S+\.ipxe", chain_script()) == [name]


def test_no_mac_address() -> None:
    with pytest.raises(InvalidInputs, match=r"52:54 is not a MAC address"):
        boot_tree.script_name("52:54")


async def test_in_a_bucket(bucket: Any) -> None:
    bucket.put_object(Bucket=S3["bucket"], Key="site/boots/mac-00.ipxe", Body=b"of somebody else")

    settings = settings_of(artifacts={**S3, "prefix": "site"})
    await boot_tree.publish(settings, ONE, "one", "chain")
    await boot_tree.publish(settings, TWO, "two", "chain")
    await boot_tree.withdraw(settings, ONE)
    assert keys(bucket, "site/boot/") == ["boot.ipxe", "mac-52-54-00-aa-bb-02.ipxe"]
    await boot_tree.withdraw(settings, TWO)
    assert keys(bucket) == ["site/boots/mac-00.ipxe"]
