"""Artifacts on an SFTP host on loopback."""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path
from typing import Any

import pytest

from metal_ipi.provider.alike import alike
from metal_ipi.provider.errors import RemoteError
from metal_ipi.provider.values import UNKNOWN, has_unknown
from tests.provider import ssh_servers as ssh
from tests.provider.harness import Harness, Resource, configured

SEED = "thirty-two random characters 123"


def inputs(ephemeral: bool = False, **files: Any) -> dict[str, Any]:
    named = {name.replace("_", "."): text for name, text in files.items()}
    return {"files": named, "pathSeed": SEED, "ephemeral": ephemeral}


async def resource(settings: dict[str, Any], type_: str = "Artifacts") -> Resource:
    return await configured(type_, artifacts=settings)


async def test_whole_life(tmp_path: Path, artifact_host: dict[str, Any]) -> None:
    it = await resource(artifact_host)
    previewed = await it.preview(inputs(boot_ign="one", node_ign=UNKNOWN))
    state = await it.up(inputs(boot_ign="one", node_ign="two"))
    folder = tmp_path / "artifacts" / state["directory"]
    assert len(state["directory"]) == 43
    assert stat.S_IMODE(folder.stat().st_mode) == 0o711
    assert sorted(path.name for path in folder.iterdir()) == ["boot.ign", "node.ign"]
    assert (folder / "boot.ign").read_text() == "one"
    assert state["hashes"]["boot.ign"] == "sha512-" + hashlib.sha512(b"one").hexdigest()
    assert state["url"] == f"https://boot.facility.test/artifacts/{state['directory']}"
    assert state["bootUrl"].startswith("http://boot.facility.test/")
    assert "files" not in state
    # What a preview can tell without touching anything, it tells.
    assert previewed["url"] == state["url"] and has_unknown(previewed["hashes"]["node.ign"])

    second = inputs(boot_ign="one", new_ign="three")
    assert await it.changes(inputs(boot_ign="one", node_ign="two")) == []
    assert await it.changes(second) == ['files["new.ign"]', 'files["node.ign"]']
    untouched = (folder / "boot.ign").stat().st_mtime_ns
    await it.up(second)
    assert sorted(path.name for path in folder.iterdir()) == ["boot.ign", "new.ign"]
    assert (folder / "boot.ign").stat().st_mtime_ns == untouched
    await it.delete()
    await it.delete()
    assert list((tmp_path / "artifacts").iterdir()) == []


async def test_files_that_machines_still_fetch_are_kept_until_the_end(
    tmp_path: Path, artifact_host: dict[str, Any]
) -> None:
    it = await resource(artifact_host)
    first, second = ({**each, "keeps": True} for each in (inputs(a_ign="x"), inputs(b_ign="x")))
    folder = tmp_path / "artifacts" / (await it.up(first))["directory"]
    assert await it.changes(second) == ['files["b.ign"]']
    state = await it.up(second)
    assert sorted(state["hashes"]) == ["a.ign", "b.ign"]
    assert await it.changes(second) == [] and await it.changes(first) == []
    (folder / "a.ign").unlink()
    await it.refresh()
    assert await it.changes(second) == [], "nothing makes it again, and nothing fails"
    assert [path.name for path in folder.iterdir()] == ["b.ign"]
    await it.delete()
    assert list((tmp_path / "artifacts").iterdir()) == []


async def test_files_that_are_nearly_the_same_are_uploaded_whole(tmp_path: Path, artifact_host: dict[str, Any]) -> None:
    it = await resource(artifact_host)
    texts = {f"{name}.ign": f"{'first ' * 9}{name}{' second' * 9}{name}" for name in ("a", "b", "c")}
    state = await it.up({"files": texts, "pathSeed": SEED})
    folder = tmp_path / "artifacts" / state["directory"]
    written = {name: (folder / name).stat().st_mtime_ns for name in texts}
    files, derived = alike(texts)
    assert sum(map(len, derived.values())) < len(texts["b.ign"])
    told = {"files": files, "like": "a.ign", "derived": derived, "pathSeed": SEED}
    assert await it.changes(told) == [], "they are told in another way, and are the same"
    # A version that knew nothing of it kept a URL of each file.
    it.state = {key: state[key] for key in state if key not in ("url", "bootUrl")}
    it.state["urls"] = {name: f"{state['url']}/{name}" for name in texts}
    assert await it.changes(told) == ["files"]
    assert (await it.up(told))["url"] == state["url"]
    assert {name: (folder / name).stat().st_mtime_ns for name in texts} == written, "nothing is uploaded for that"
    assert "derived" not in it.state and it.state["hashes"] == state["hashes"]
    other = alike({**texts, "b.ign": "another"})[1]
    assert await it.changes({**told, "derived": other}) == ['files["b.ign"]']
    await it.up({**told, "derived": other})
    assert [(folder / name).read_text() for name in texts] == [texts["a.ign"], "another", texts["c.ign"]]
    assert await it.check({**told, "like": "x.ign", "derived": {"a.ign": "[]", "b/": "[]"}}) == [
        'derived["b/"] is not a plain file name: letters, digits, `.`, `_` and `-`, not beginning with a dot',
        "like must be the name of one of `files`: `derived` has what others have instead of it",
        'derived["a.ign"] is one of `files` already',
    ]
    assert await it.check({**told, "derived": {"b.ign": "[[0,4000]]"}}) != []
    await it.delete()
    assert list((tmp_path / "artifacts").iterdir()) == []


async def test_a_run_after_a_kill_overwrites_the_same_place(tmp_path: Path, artifact_host: dict[str, Any]) -> None:
    first = (await (await resource(artifact_host)).up(inputs(a_ign="old")))["directory"]
    second = (await (await resource(artifact_host)).up(inputs(a_ign="new")))["directory"]
    assert first == second
    assert (tmp_path / "artifacts" / second / "a.ign").read_text() == "new"


async def test_delete_after_a_kill_knows_the_inputs_only(tmp_path: Path, artifact_host: dict[str, Any]) -> None:
    it = await resource(artifact_host)
    folder = tmp_path / "artifacts" / (await it.up(inputs(a_ign="one")))["directory"]
    assert folder.exists()
    it.id, it.state = "interrupted", inputs(a_ign="one")
    await it.delete()
    assert not folder.exists()
    await it.delete()


@pytest.mark.parametrize("ephemeral", [False, True])
async def test_refresh(tmp_path: Path, ephemeral: bool, artifact_host: dict[str, Any]) -> None:
    it = await resource(artifact_host)
    wanted = inputs(ephemeral, a_ign="one", b_ign="two")
    folder = tmp_path / "artifacts" / (await it.up(wanted))["directory"]
    (folder / "a.ign").unlink()
    (folder / "b.ign").write_text("tampered")
    await it.refresh()
    assert await it.changes(wanted) == ([] if ephemeral else ['files["a.ign"]', 'files["b.ign"]'])
    if not ephemeral:
        await it.up(wanted)
        assert [(folder / name).read_text() for name in ("a.ign", "b.ign")] == ["one", "two"]


async def test_removal_deletes_files_twice_over(tmp_path: Path, artifact_host: dict[str, Any]) -> None:
    it = await resource(artifact_host)
    state = await it.up(inputs(True, a_ign="one"))
    removal = await resource(artifact_host, "Removal")
    named = {"artifactsDirectory": state["directory"], "artifactsFiles": ["a.ign"]}
    await removal.up(named)
    assert not (tmp_path / "artifacts" / state["directory"]).exists()
    removed_at = removal.state["removedAt"]
    assert await removal.changes(named) == []
    await removal.up({**named, "triggers": ["again"]})
    assert removal.state["removedAt"] >= removed_at
    await it.refresh()
    assert await it.changes(inputs(True, a_ign="one")) == []
    await it.delete()


async def test_another_host_key_is_refused(tmp_path: Path, artifact_host: dict[str, Any]) -> None:
    wrong = {**artifact_host, "hostKey": ssh.public(ssh.key())}
    with pytest.raises(RemoteError, match="another SSH host key than the pinned one"):
        await (await resource(wrong)).up(inputs(a_ign="one"))
    stranger = {**artifact_host, "privateKey": ssh.private(ssh.key())}
    with pytest.raises(RemoteError, match="refuses the login of upload"):
        await (await resource(stranger)).up(inputs(a_ign="one"))


async def test_check() -> None:
    it = Resource(Harness(), "Artifacts")
    wrong = {"files": {"../x": "1", ".hidden": "2", "ok": 3.0, "fine": UNKNOWN}, "pathSeed": "short"}
    assert [problem.split(" ")[0] for problem in await it.check(wrong)] == [
        "files.ok",
        "pathSeed",
        'files["../x"]',
        'files[".hidden"]',
    ]
    found = await Resource(Harness(), "Artifacts", id="x", state={"pathSeed": "old", "hashes": {}}).diff(inputs())
    assert found.replaces == ["pathSeed"]
