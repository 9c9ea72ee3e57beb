"""Values that end up in a shell, an SSH target, a path, a URL or an iPXE script: their form, and nothing else."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from metal_ipi.stacks.problems import SettingsError
from metal_ipi.stacks.sections import forms
from metal_ipi.stacks.settings import parse
from tests.mocks import config_text
from tests.stacks.answers import settings
from tests.stacks.rack import rack

_METAL: dict[str, Any] = {
    key: value if value[:1] not in "{[" else json.loads(value) for key, value in settings().items()
}
_METRO = {**_METAL, "platform": {key: value for key, value in _METAL["platform"].items() if key != "facilities"}}
_S3 = {**rack()}
_HOSTILE = [
    "",
    " ",
    "a b",
    "a\nb",
    "a\0b",
    "$(reboot)",
    "`reboot`",
    "a;reboot",
    "a&&reboot",
    "a|reboot",
    "a'b",
    'a"b',
    "${net0/mac}",
    "-oProxyCommand=reboot",
    "../../etc",
    "a/../b",
    "höst",
    "x" * 5000,
]
_PLACES: dict[str, dict[str, Any]] = {
    **dict.fromkeys(
        (
            "artifacts.host",
            "artifacts.user",
            "artifacts.directory",
            "artifacts.hostKey",
            "artifacts.baseUrl",
            "artifacts.bootBaseUrl",
            "dns.zone",
            "dns.server",
            "dns.tsig.name",
            "platform.bootstrapPlan",
            "platform.controlPlanePlan",
            "platform.workerPlan",
        ),
        _METAL,
    ),
    **dict.fromkeys(("artifacts.bucket", "artifacts.region", "artifacts.endpoint", "artifacts.accessKeyId"), _S3),
    "platform.metro": _METRO,
}


def _with(tree: dict[str, Any], path: str, value: Any) -> dict[str, str]:
    tree = copy.deepcopy(tree)
    *sections, last = path.split(".")
    parent: Any = tree
    for section in sections:
        parent = parent[section]
    parent[last] = value
    return config_text(tree)


def _problems(tree: dict[str, Any], path: str, value: Any) -> list[str]:
    try:
        parse(_with(tree, path, value), "s1")
    except SettingsError as error:
        return [problem.path for problem in error.problems]
    return []


@pytest.mark.parametrize("value", _HOSTILE, ids=repr)
@pytest.mark.parametrize("path", _PLACES)
def test_what_means_something_elsewhere_is_refused(path: str, value: str) -> None:
    assert f"metal-ipi:{path}" in _problems(_PLACES[path], path, value)


@pytest.mark.parametrize(
    "path", ["install.workDirectory", "install.logDirectory", "install.installer", "boot.streamFile"]
)
@pytest.mark.parametrize("value", ["", "a\nb", "a\0b", "-x", "x" * 5000], ids=repr)
def test_a_path_here_is_one(path: str, value: str) -> None:
    tree = {**_METAL, "boot": {**_METAL["boot"], "streamFile": "stacks/rhcos-4.21.json"}}
    assert f"metal-ipi:{path}" in _problems(tree, path, value)


@pytest.mark.parametrize("value", [each for each in _HOSTILE if each[:1] not in ("", "-")], ids=repr)
def test_a_prefix_of_keys_is_one(value: str) -> None:
    assert _problems(_S3, "artifacts.prefix", value) == ["metal-ipi:artifacts.prefix"]


@pytest.mark.parametrize(
    ("tree", "path", "value"),
    [
        (_METAL, "artifacts.host", "boot-1.dc.example.com"),
        (_METAL, "artifacts.host", "192.0.2.12"),
        (_METAL, "artifacts.host", "2001:db8::12"),
        (_METAL, "artifacts.host", "localhost"),
        (_METAL, "artifacts.user", "_svc.upload-1"),
        (_METAL, "artifacts.directory", "/"),
        (_METAL, "artifacts.directory", "/srv/www/artifacts_2/~ipi/"),
        (_METAL, "artifacts.baseUrl", "https://boot.example.com:8443/a/b_c~d"),
        (_METAL, "artifacts.baseUrl", "https://[2001:db8::12]/a"),
        (_METAL, "artifacts.baseUrl", "https://boot.example.com"),
        (_METAL, "artifacts.bootBaseUrl", "http://192.0.2.12/artifacts"),
        (_METAL, "dns.zone", "example.com"),
        (_METAL, "dns.tsig.name", "metal-ipi."),
        (_METAL, "dns.tsig.name", "_key.example.com"),
        (_METAL, "platform.workerPlan", "m3.large.x86"),
        (_METAL, "install.installer", "/opt/OpenShift 4.21/openshift-install"),
        (_METAL, "install.installer", "openshift-install-fips"),
        (_METAL, "install.logDirectory", "/var/log/metal ipi"),
        (_METRO, "platform.metro", "da"),
        (_S3, "artifacts.bucket", "my.bucket-1"),
        (_S3, "artifacts.prefix", "a/b_c"),
        (_S3, "artifacts.prefix", "/a/"),
        (_S3, "artifacts.prefix", ""),
        (_S3, "artifacts.region", "eu-central-1"),
        (_S3, "artifacts.endpoint", "https://s3.example.com:9000"),
        (_S3, "artifacts.accessKeyId", "AKIAIOSFODNN7EXAMPLE"),
    ],
)
def test_what_people_have_is_taken(tree: dict[str, Any], path: str, value: str) -> None:
    assert [each for each in _problems(tree, path, value) if each.endswith(path)] == []


@pytest.mark.parametrize(
    "value",
    [
        "https://user:pass@boot.example.com/a",
        "https://boot.example.com/a?x=1",
        "https://boot.example.com/a#b",
        "https://boot.example.com:99999999/a",
        "https:///a",
        "https://1.2.3/a",
        "https://boot.example.com/a/../b",
        "https://boot.example.com/a b",
        "ftp://boot.example.com/a",
    ],
)
def test_a_url_that_names_are_put_behind_is_plain(value: str) -> None:
    assert _problems(_METAL, "artifacts.baseUrl", value) == ["metal-ipi:artifacts.baseUrl"]


_TAKEN = {
    "Host": r"[A-Za-z0-9.:-]+",
    "User": r"[A-Za-z0-9_.-]+",
    "PathOnServer": r"/[A-Za-z0-9._+@=,~/-]*",
    "Plan": r"[a-z0-9._-]+",
    "Metro": r"[a-z]+",
    "Zone": r"[A-Za-z0-9._-]+",
    "KeyName": r"[A-Za-z0-9._-]+",
    "Bucket": r"[a-z0-9.-]+",
    "Prefix": r"[A-Za-z0-9._+@=,~/-]*",
    "Region": r"[a-z0-9-]+",
    "Endpoint": r"https?://[A-Za-z0-9._~%+@,=:/\[\]-]+",
}


_FORMS: dict[str, TypeAdapter[str]] = {name: TypeAdapter(getattr(forms, name)) for name in _TAKEN}


@given(st.sampled_from(list(_TAKEN)), st.text(alphabet="abzAZ09._-/:@%~+=,[]$ \n\\&|;'\"`{}()#?é", max_size=30))
@profile(max_examples=500, deadline=None)
def test_whatever_is_taken_has_no_other_character(form: str, value: str) -> None:
    try:
        taken = _FORMS[form].validate_python(value)
    except ValidationError:
        return
    assert taken == value and re.fullmatch(_TAKEN[form], value) and ".." not in value.split("/")
