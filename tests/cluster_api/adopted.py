"""Runs inside a lab with a rack whose cluster `up` made: a hub takes it over, and gives it back. Prints the Secret with
the install state as the hub leaves it.

python -m tests.cluster_api.adopted FACTS STACKFILE SECRET
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import yaml

from lab.layout import Layout
from tests.cluster_api import hub as hubs
from tests.cluster_api import objects as made
from tests.cluster_api.day_two import Fleet, is_complete
from tests.cluster_api.hub import Hub
from tests.cluster_api.whole import settings_of

_LONGEST = 300.0


def main() -> None:
    """One cluster."""
    facts, stack, secret = (Path(each) for each in sys.argv[1:4])
    tree, secrets, authority = settings_of(facts, stack)
    for variable in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
        os.environ[variable] = authority
    name, servers = str(tree["clusterName"]), tree["platform"]["servers"]
    with tempfile.TemporaryDirectory() as folder, hubs.hub(Path(folder), lease=60) as hub:
        fleet = Fleet(hub, name, Layout(facts.parent))
        before = fleet.servers()
        hub.make("secrets", yaml.safe_load(secret.read_text()))
        made.create(hub, tree, secrets, workers=sum(each["name"].startswith("worker-") for each in servers))
        with hub.core_controllers(), hub.working():
            fleet.until_settled(len(servers), "all machines are known")
            hub.until(lambda: is_complete(hub, name), "the cluster is complete", _LONGEST)
            assert fleet.servers() == before
            hub.patch(made.CLUSTERS, name, {"spec": {"paused": True}})
            hub.until(lambda: _is_paused(hub), "nothing is done any more")
            state = hub.get("secrets", f"{name}-install-state")
        assert fleet.servers() == before
        print(yaml.safe_dump(state))


def _is_paused(hub: Hub) -> bool:
    """Whether all objects that steps are done for say so."""
    kinds = (made.FACILITIES, made.CONTROL_PLANES, made.SERVERS, made.CONFIGS)
    found = [(kind, each["metadata"]["name"]) for kind in kinds for each in hub.list(kind)]
    return {hub.condition(kind, name, "Paused")[0] for kind, name in found} == {"True"}


if __name__ == "__main__":
    main()
