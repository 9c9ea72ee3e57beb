"""What `make preflight` asks the provider, beyond the settings: what the stack's state tells."""

from __future__ import annotations

from tests.stacks.answers import settings
from tools import preflight
from tools.state import Deployment


def test_the_run_and_whether_it_has_passed_before_are_the_states_to_tell() -> None:
    new = preflight.request(settings("rack7"), "rack7", Deployment(document={}))
    assert "run" not in new["inputs"] and new["again"] is False
    resources = [
        {"type": "metal-ipi:index:ClusterKeys", "id": "16hexdigits"},
        {"type": "metal-ipi:index:Preflight", "id": "preflight/rack7"},
    ]
    up = preflight.request(settings("rack7"), "rack7", Deployment(document={"deployment": {"resources": resources}}))
    assert up["inputs"] == {**new["inputs"], "run": "16hexdigits"} and up["again"] is True
