"""The copy of the stack file that the engine reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from tools import project
from tools.engine import Engine
from tools.files import write_private
from tools.layout import Layout
from tools.project import write_config
from tools.stackfile import Config

_TOKEN, _PASSWORD = "metal-ipi:platform.authToken", "metal-ipi:platform.servers[1].bmc.password"


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    found = Layout(root=tmp_path, stack="lab")
    write_private(found.passphrase, "a passphrase")
    return found


@pytest.fixture
def sealed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of the secrets that the engine was asked to encrypt."""
    paths: list[str] = []

    def encrypted(layout: Layout, engine: Any, env: Any, secret: tuple[str, str]) -> dict[str, Any]:
        paths.append(secret[0])
        secure = {"secure": f"{secret[1]} sealed, {len(paths)}"}
        return {"encryptionsalt": "a salt", "config": {"metal-ipi:encrypted": secure}}

    monkeypatch.setattr(project, "_encrypted", encrypted)
    return paths


def _write(layout: Layout, count: int, **secrets: str) -> dict[str, Any]:
    """Write a configuration; the copy."""
    platform = {"servers": [{"name": "a"}, {"name": "b", "bmc": {}}]}
    document = {"config": {"metal-ipi:workers": {"count": count}, "metal-ipi:platform": platform}}
    given = {{"token": _TOKEN, "password": _PASSWORD}[name]: value for name, value in secrets.items()}
    write_config(layout, Config(document=document, secrets=given), cast(Engine, None), {})
    return yaml.safe_load(layout.config.read_text())


def test_only_secrets_that_changed_are_encrypted_again(layout: Layout, sealed: list[str]) -> None:
    first = _write(layout, 1, token="one", password="two")
    assert first["encryptionsalt"] == "a salt" and sorted(sealed[1:]) == sorted([_TOKEN, _PASSWORD])
    sealed.clear()
    assert _write(layout, 1, token="one", password="two") == first and sealed == []
    second = _write(layout, 2, token="one", password="two")
    assert second["config"]["metal-ipi:platform"] == first["config"]["metal-ipi:platform"] and sealed == []
    assert second["config"]["metal-ipi:workers"] == {"count": 2} and second["encryptionsalt"] == "a salt"
    third = _write(layout, 2, token="one", password="three")
    assert sealed == [_PASSWORD]
    assert third["config"]["metal-ipi:platform"]["servers"][1]["bmc"]["password"] == {"secure": "three sealed, 1"}
    assert third["config"]["metal-ipi:platform"]["authToken"] == first["config"]["metal-ipi:platform"]["authToken"]


@pytest.mark.parametrize("lost", ["config", "config_stamp"])
def test_all_are_encrypted_again_when_the_copy_is_not_known(layout: Layout, sealed: list[str], lost: str) -> None:
    _write(layout, 1, token="one")
    sealed.clear()
    cast(Path, getattr(layout, lost)).unlink()
    assert _write(layout, 1, token="one")["config"]["metal-ipi:platform"]["authToken"]["secure"].startswith("one")
    assert _TOKEN in sealed


def test_a_secret_that_somebody_took_out_of_the_copy_is_encrypted_again(layout: Layout, sealed: list[str]) -> None:
    copy = _write(layout, 1, token="one")
    del copy["config"]["metal-ipi:platform"]
    write_private(layout.config, yaml.safe_dump(copy))
    sealed.clear()
    assert "authToken" in _write(layout, 2, token="one")["config"]["metal-ipi:platform"] and sealed == [_TOKEN]
