"""The site's boot tree, and the same for matchbox."""

from __future__ import annotations

import json
from pathlib import Path

from components.boot.ipxe import BootSpec, installer_arguments
from components.boot.site import MatchboxMachine, chain_script, matchbox_files, matchbox_ignition_url
from components.boot.stream import pxe_artifacts
from tests import golden

_STREAM = Path(__file__).resolve().parents[2] / "stacks" / "rhcos-4.21.json"
_MAC = "52:54:00:12:34:AB"


def test_the_chain_script() -> None:
    golden.check("boot.ipxe", chain_script())


def test_matchbox_files() -> None:
    artifacts = pxe_artifacts(_STREAM.read_text(), "x86_64")
    url = matchbox_ignition_url("http://matchbox.facility.test:8080/", _MAC)
    assert url == "http://matchbox.facility.test:8080/ignition?mac=52-54-00-12-34-ab"
    spec = BootSpec(artifacts=artifacts, architecture="x86_64", platform_id="metal", consoles=("ttyS0,115200n8",))
    files = matchbox_files(
        MatchboxMachine(
            name="rack-worker-0",
            mac=_MAC,
            artifacts=artifacts,
            arguments=installer_arguments(spec, config_url=url),
            ignition='{"ignition":{"version":"3.3.0"}}',
        )
    )
    golden.check_json("matchbox-profile.json", files["profiles/rack-worker-0.json"])
    golden.check_json("matchbox-group.json", files["groups/rack-worker-0.json"])
    assert files["ignition/rack-worker-0.ign"] == '{"ignition":{"version":"3.3.0"}}'
    profile, group = (json.loads(files[f"{kind}/rack-worker-0.json"]) for kind in ("profiles", "groups"))
    assert group["profile"] == profile["id"] and f"ignition/{profile['ignition_id']}" in files
    assert len(files) == 3
