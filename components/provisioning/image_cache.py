"""The image cache: fetches each listed image once, checks its hash and serves it; deletes images that are no longer
listed.

It is separate from the conductors, so several Ironics can share it. The list is a ConfigMap that the fetcher reads
again every few seconds, so a changed list needs no restart.
"""

from __future__ import annotations

import json
from pathlib import Path

from metal_ipi.components.provisioning import files, objects
from metal_ipi.components.provisioning.configuration import IMAGES
from metal_ipi.components.provisioning.contract import IMAGES_PORT, ImageCache, IronicArgs, NodePorts
from metal_ipi.components.provisioning.objects import Object

LIST = f"{IMAGES}-list"
_PROGRAM = Path(__file__).with_name("fetch_images.py")
_ROOT = "/images"


def listed(args: IronicArgs, cache: ImageCache) -> Object:
    """The ConfigMap with the list of images."""
    wanted = [{"name": each.name, "url": each.url, "sha256": each.sha256} for each in cache.images]
    data = {"images.json": json.dumps(wanted, indent=2), **({"ca.crt": cache.ca} if cache.ca else {})}
    return objects.manifest("ConfigMap", LIST, args.namespace, IMAGES, data=data)


def program(args: IronicArgs) -> Object:
    """The ConfigMap with the fetcher's program and the web server's configuration."""
    data = {"fetch.py": _PROGRAM.read_text(), "nginx.conf": _nginx_conf(args)}
    return objects.manifest("ConfigMap", IMAGES, args.namespace, IMAGES, data=data)


def _nginx_conf(args: IronicArgs) -> str:
    return files.nginx_conf(f"{_ROOT}/ready", IMAGES_PORT, tls=not args.plain_boot_files)


def volume(args: IronicArgs, cache: ImageCache) -> Object:
    """The claim of the volume for the images."""
    spec = objects.claim(IMAGES, cache.storage, cache.storage_class)
    return objects.manifest("PersistentVolumeClaim", IMAGES, args.namespace, IMAGES, spec=spec)


def deployment(args: IronicArgs) -> Object:
    """The fetcher, and the web server beside it. The pod is ready when all listed images are there."""
    mounts = [objects.mount("images", _ROOT), objects.mount("tmp", "/tmp")]  # noqa: S108 - a path in a container
    fetcher = objects.container(
        "fetch",
        args.images.ironic,
        ["python3", "/etc/images/program/fetch.py", "/etc/images/list/images.json", _ROOT],
        [
            *mounts,
            objects.mount("program", "/etc/images/program", read_only=True),
            objects.mount("list", "/etc/images/list", read_only=True),
        ],
        readinessProbe={
            "exec": {"command": ["python3", "/etc/images/program/fetch.py", "--complete", _ROOT]},
            "periodSeconds": 5,
            "timeoutSeconds": 5,
        },
    )
    tls = [objects.mount("tls", "/etc/files/tls", read_only=True)]
    server = objects.container(
        "files",
        args.images.files,
        ["nginx", "-c", "/etc/images/program/nginx.conf", "-g", "daemon off;"],
        [*mounts, objects.mount("program", "/etc/images/program", read_only=True), *tls],
        ports=[{"name": "images", "containerPort": IMAGES_PORT}],
        readinessProbe={"tcpSocket": {"port": "images"}, "periodSeconds": 5},
    )
    volumes: list[Object] = [
        {"name": "images", "persistentVolumeClaim": {"claimName": IMAGES}},
        objects.empty("tmp"),
        objects.of_map("program", IMAGES),
        objects.of_map("list", LIST),
        objects.of_secret("tls", "ironic-tls", {"tls.crt": "tls.crt", "tls.key": "tls.key"}),
    ]
    made_of = objects.digest(_nginx_conf(args), _PROGRAM.read_text())
    template = objects.pod(
        IMAGES, {"containers": [fetcher, server], "volumes": volumes}, {"metal-ipi/made-of": made_of}
    )
    return objects.manifest(
        "Deployment",
        IMAGES,
        args.namespace,
        IMAGES,
        spec={
            "replicas": 1,
            "strategy": {"type": "Recreate"},  # only one pod can mount its volume
            **objects.pods_of(IMAGES, template),
        },
    )


def service(args: IronicArgs) -> Object:
    """The Service by which servers and conductors reach it."""
    access = args.access
    where = access.images if isinstance(access, NodePorts) else access.address
    return objects.manifest(
        "Service",
        IMAGES,
        args.namespace,
        IMAGES,
        spec=objects.published(objects.selector(IMAGES), "images", IMAGES_PORT, where),
    )
