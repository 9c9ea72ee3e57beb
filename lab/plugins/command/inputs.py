"""What `local.Command` and `remote.Command` take; names and defaults are the official schema's."""

from __future__ import annotations

from collections.abc import Mapping

from lab.plugins.fields import Field

STRING = Field(kind="string")
STRINGS = Field(kind="list", element=STRING)

LOGGING = Field(kind="string", choices=("stdout", "stderr", "stdoutAndStderr", "none"))

COMMON: Mapping[str, Field] = {
    "create": STRING,
    "update": STRING,
    "delete": STRING,
    "triggers": Field(kind="list", replace=True),
    "stdin": STRING,
    "logging": LOGGING,
    "environment": Field(kind="map", element=STRING),
    "addPreviousOutputInEnv": Field(kind="boolean"),
}

CONNECTION_BASE: Mapping[str, Field] = {
    "host": Field(kind="string", required=True),
    "port": Field(kind="number", default=22),
    "user": Field(kind="string", default="root"),
    "password": Field(kind="string", secret=True),
    "privateKey": Field(kind="string", secret=True),
    "privateKeyPassword": Field(kind="string", secret=True),
    "agentSocketPath": STRING,
    "dialErrorLimit": Field(kind="integer", default=10),
    "perDialTimeout": Field(kind="integer", default=15),
    "hostKey": STRING,
}

LOCAL: Mapping[str, Field] = {
    **COMMON,
    "interpreter": STRINGS,
    "dir": STRING,
    "assetPaths": STRINGS,
    "archivePaths": STRINGS,
}

REMOTE: Mapping[str, Field] = {
    **COMMON,
    "connection": Field(
        kind="object",
        required=True,
        secret=True,
        fields={**CONNECTION_BASE, "proxy": Field(kind="object", fields=CONNECTION_BASE)},
    ),
}

NOT_IN_THE_LAB = ("assetPaths", "archivePaths", "connection.proxy")
"""Inputs the official plug-in honours and the stand-in refuses by name."""
