"""The official Python client, unchanged, walks a device through its life over a real socket."""

from __future__ import annotations

import asyncio
import importlib
import threading
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lab.metal_api import wire
from lab.metal_api.urls import api
from tests.lab.metal_api.harness import IDENTITY, PUBLIC_KEY, World, world


@contextmanager
def served(directory: Path) -> Generator[tuple[str, World], None, None]:
    """The API on a loopback port, in a thread with a loop of its own: the client blocks."""
    ready, found = threading.Event(), dict[str, Any]()

    async def serve() -> None:
        async with world(directory) as lab:
            sock = wire.listen("127.0.0.1", 0)
            server = wire.server(api(lab.account, lab.provisioner, lab.store), certificate=None)
            found.update(port=sock.getsockname()[1], lab=lab, server=server)
            task = await server.begin(sock)
            ready.set()
            await task

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert ready.wait(10)
        yield f"http://127.0.0.1:{found['port']}/metal/v1", found["lab"]
    finally:
        found["server"].should_exit = True
        thread.join()


def test_the_official_client(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the generated client is not free of deprecated calls
        metal: Any = importlib.import_module("equinix_metal")
        with served(tmp_path) as (url, lab):
            configuration = metal.Configuration(host=url, api_key={"x_auth_token": IDENTITY.token})
            client = metal.ApiClient(configuration)
            devices, keys = metal.DevicesApi(client), metal.SSHKeysApi(client)
            project = metal.ProjectsApi(client).find_project_by_id(IDENTITY.project_id)
            assert project.name == "lab"
            key = keys.create_project_ssh_key(IDENTITY.project_id, metal.SSHKeyCreateInput(label="k", key=PUBLIC_KEY))
            order = metal.DeviceCreateInMetroInput(
                metro="lb",
                plan="c3.small.x86",
                operating_system="custom_ipxe",
                hostname="node",
                ipxe_script_url="http://boot.facility.test/boot.ipxe",
                tags=["metal-ipi"],
            )
            device = devices.create_device(IDENTITY.project_id, metal.CreateDeviceRequest(actual_instance=order))
            shown = devices.find_device_by_id(device.id, include=["project", "facility"])
            assert (shown.hostname, shown.facility.code) == ("node", "lab1")
            assert shown.ip_addresses[0].address == "198.51.100.1"
            listed = devices.find_project_devices(IDENTITY.project_id, tag="metal-ipi")
            assert [entry.id for entry in listed.devices] == [device.id]
            assert metal.EventsApi(client).find_device_events(device.id) is not None
            devices.delete_device(device.id, force_delete=True)
            keys.delete_ssh_key(key.id)
            assert not lab.account.keys
