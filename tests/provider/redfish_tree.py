"""A BMC as a tree of documents, which sushy reads without a network."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import sushy
from sushy import exceptions
from sushy.auth import BasicAuth

Json = dict[str, Any]
SYSTEM, MANAGER, CHASSIS = "/redfish/v1/Systems/1", "/redfish/v1/Managers/1", "/redfish/v1/Chassis/1"


@dataclass
class Answer:
    """What a connector answers."""

    document: Any
    status_code: int = 200
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    content: bytes = b"{}"

    def json(self) -> Any:
        return json.loads(json.dumps(self.document))


@dataclass
class Tree:
    """In the place of sushy's connector."""

    documents: dict[str, Json]
    """By path."""
    refuses_queries: tuple[str, ...] = ()
    """Paths that take no query parameters."""
    asked: list[str] = field(default_factory=list[str])

    def get(self, path: str = "", **__: Any) -> Answer:
        self.asked.append(path)
        path, _mark, query = path.rstrip("/").partition("?")
        found = self.documents.get(path)
        if found is None or (query and path in self.refuses_queries):
            raise exceptions.HTTPError("GET", path, Answer({}, 400 if found else 404))
        return Answer(self._expanded(found) if query else {"@odata.id": path, **found})

    def _expanded(self, document: Json) -> Json:
        def whole(item: Any) -> Any:
            path = item.get("@odata.id") if isinstance(item, dict) and len(item) == 1 else None
            return item if path is None else {"@odata.id": path, **self.documents[path]}

        return {key: [whole(each) for each in value] if isinstance(value, list) else value
                for key, value in document.items()}  # fmt: skip

    def set_auth(self, _: Any) -> None:
        pass

    def set_http_basic_auth(self, *_: str) -> None:
        pass

    def system(self) -> Any:
        """The one System, as sushy has it."""
        connector: Any = self
        auth = BasicAuth("u", "p")
        return sushy.Sushy("https://bmc", auth=auth, connector=connector).get_system(SYSTEM)


def link(path: str) -> Json:
    return {"@odata.id": path}


def collection(path: str, members: Mapping[str, Json]) -> dict[str, Json]:
    """A collection with its members, by path."""
    paths = [f"{path}/{name}" for name in members]
    listed = {path: {"Members": [link(each) for each in paths]}}
    return {**listed, **{each: dict(found) for each, found in zip(paths, members.values(), strict=True)}}


def bmc(system: Json, *parts: Mapping[str, Json], features: Json | None = None, **more: Any) -> Tree:
    """A BMC whose System has these members; `parts` are further documents, `features` what it offers of queries."""
    root: Json = {"RedfishVersion": "1.11.0", "Systems": link("/redfish/v1/Systems"), "Id": "r", "Name": "r"}
    if features is not None:
        root["ProtocolFeaturesSupported"] = {"ExpandQuery": features}
    links = {"Chassis": [link(CHASSIS)], "ManagedBy": [link(MANAGER)]}
    documents: dict[str, Json] = {
        "/redfish/v1": root,
        SYSTEM: {"Id": "1", "Name": "s", "PowerState": "Off", "Links": links, "Actions": {}, **system},
        MANAGER: {},
        CHASSIS: {},
    }
    for part in parts:
        for path, document in part.items():
            documents[path] = {**documents.get(path, {}), **document}
    return Tree(documents, **more)
