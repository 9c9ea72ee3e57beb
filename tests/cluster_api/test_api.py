"""Calls to the management cluster's API."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from metal_ipi.cluster_api.api import LEASE, Api, ApiError


class _Empty(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(b'{"items": []}')


def test_a_call_does_not_wait_for_other_work_in_threads(tmp_path: Path) -> None:
    # Else a leader could not renew its Lease while all of Python's threads wait, say, for a name server.
    with ThreadingHTTPServer(("127.0.0.1", 0), _Empty) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        cluster = {"name": "hub", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}
        context = {"name": "hub", "context": {"cluster": "hub", "user": "hub"}}
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(
            yaml.safe_dump(
                {"clusters": [cluster], "contexts": [context], "users": [{"name": "hub", "user": {}}]}
                | {"current-context": "hub"}
            )
        )
        done = threading.Event()

        async def asked() -> list[object]:
            asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
            waiting = asyncio.ensure_future(asyncio.to_thread(done.wait, 30))
            try:
                return [*await asyncio.wait_for(Api(str(kubeconfig)).list(LEASE, "own"), 10), waiting.done()]
            finally:
                done.set()
                await waiting

        assert asyncio.run(asked()) == [False]
        server.shutdown()


@pytest.mark.parametrize("text", ["apiVersion: v1\nkind: Config\n", "-----BEGIN PRIVATE KEY-----\n", "{", ""])
def test_a_wrong_kubeconfig_is_named(tmp_path: Path, text: str) -> None:
    (file := tmp_path / "kubeconfig").write_text(text)
    with pytest.raises(ApiError, match=f"^{file} is not a kubeconfig that can be used: "):
        Api(str(file))
