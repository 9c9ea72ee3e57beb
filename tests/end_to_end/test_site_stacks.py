"""What a site may want, made by the real installer: addresses that OpenShift keeps, FIPS, a proxy."""

from __future__ import annotations

import re
from collections.abc import Generator
from pathlib import Path

import pytest

from lab.network import plan
from lab.openshift.real import openshift_install
from tests.end_to_end.conftest import copies
from tests.end_to_end.project import Project, await_
from tests.end_to_end.user import User

pytestmark = [pytest.mark.lab, pytest.mark.engine, pytest.mark.nightly, pytest.mark.usefixtures("kubernetes")]

_API, _INGRESS = "192.0.2.124", "192.0.2.125"


@pytest.fixture
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Project, None, None]:
    """A copy whose stack is up."""
    if openshift_install.cached() is None:
        pytest.skip("the real openshift-install is not built yet: `make conformance` builds it")
    for project in copies(tmp_path, stack=request.param):
        project.make("up")
        yield project
        project.assert_unchanged("refresh", "up")
        project.assert_down()


@pytest.mark.parametrize("site", ["baremetal"], indirect=True)
def test_the_platforms_addresses_move_to_a_machine_that_serves(site: Project) -> None:
    output = site.output()
    assert (output["api"]["address"], output["ingress"]["address"]) == (_API, _INGRESS)
    for number in (0, 1, 2):  # one of them has the API's address
        site.rack("power", server=f"server-{number}", to="off")
        await_(lambda: site.http_status(f"https://{_API}:6443/readyz") == "200", f"the API without server-{number}", 30)
        site.rack("power", server=f"server-{number}", to="on")
        await_(lambda: site.make("output").status == 0, "the lab answers")
        host = output["nodes"][number]["public_ipv4"]
        await_(lambda host=host: site.http_status(f"https://{host}:6443/readyz") == "200", f"{host} serves again")
    assert site.http_status(f"https://{_INGRESS}/") == "503"
    site.rack("power", server="server-3", to="off")
    await_(
        lambda: site.http_status(f"https://{_INGRESS}/") == "000", "nobody takes ingress: the only router is off", 30
    )
    site.rack("power", server="server-3", to="on")
    await_(lambda: site.http_status(f"https://{_INGRESS}/") == "503", "the router is back")


@pytest.mark.parametrize("site", ["arbiter"], indirect=True)
def test_an_arbiter_joins_by_its_own_configuration_and_serves_nothing(site: Project, tmp_path: Path) -> None:
    """From the bootstrap machine's real server, which is gone by then. The lab has no operator of etcd."""
    nodes = {node["role"]: node for node in site.output()["nodes"]}
    assert {check["status"] for check in nodes["arbiter"]["checks"]} <= {"passed", "skipped"}
    its = User(site, tmp_path)("get", f"/api/v1/nodes/{nodes['arbiter']['name']}")
    roles = {name for name in its["metadata"]["labels"] if name.startswith("node-role.kubernetes.io/")}
    assert roles == {"node-role.kubernetes.io/arbiter"}
    assert {taint["key"] for taint in its["spec"]["taints"]} == {
        "node-role.kubernetes.io/master",
        "node-role.kubernetes.io/arbiter",
    }
    assert site.http_status(f"https://{nodes['arbiter']['public_ipv4']}:6443/readyz") == "000"


@pytest.mark.parametrize("site", ["fips"], indirect=True)
def test_every_node_is_in_fips_mode_from_its_disk(site: Project) -> None:
    for node in site.output()["nodes"]:
        checks = {check["name"]: (check["status"], check["observed"]) for check in node["checks"]}
        assert checks["fips"] == ("passed", "/proc/sys/crypto/fips_enabled is 1")
    lines = [
        [line for line in console.read_text().splitlines() if line.startswith("Command line: ")]
        for console in (site.layout.state / "machines").glob("*/console.log")
    ]
    assert all(" fips=1" in boots[0] for boots in lines), "live systems are in it from the start"
    installed = [[line for line in boots if "ignition.firstboot" not in line] for boots in lines]
    assert sum(bool(boots) and " fips=1" in boots[-1] for boots in installed) == len(site.devices())


@pytest.mark.parametrize("site", ["proxy"], indirect=True)
def test_nodes_and_the_bootstrap_machine_fetch_images_by_the_proxy(site: Project) -> None:
    log = site.layout.log("proxy").read_text()
    asked = set(re.findall(rf"Request .*: GET http://{re.escape(plan.BOOT_NAME)}/containers/(\S+) HTTP", log))
    assert any("machine-config-operator" in path for path in asked), log[-2000:]
    came = set(re.findall(r"Connect \(file descriptor \d+\): (\S+)", log))
    nodes = {node["public_ipv4"] for node in site.output()["nodes"] if node["role"] == "control-plane"}
    assert nodes <= {address for text in came for address in re.findall(r"[\d.]+", text)}, came
