"""The base of all declared inputs: what programs give, what the provider reads, and what is said of wrong values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import pulumi
import pytest
from pydantic import ValidationError

from metal_ipi.provider.errors import InvalidInputs
from metal_ipi.provider.forms import NOT_EMPTY, PLACEHOLDER, HostName, Sha256, Url, Whole, between
from metal_ipi.provider.given import Flat, Given, GivenList, GivenMap, LateFlag, ListOf, Local, Secret, default
from metal_ipi.provider.inputs import Conflict, Inputs
from metal_ipi.provider.values import UNKNOWN, Unknown
from tests.mocks import Recorder, is_secret, plain, run

URL, DIGEST = "https://mirror.test/file", "ab" * 32


class File(Inputs):
    """A map among inputs."""

    url: Given[Url]
    sha256: Given[Sha256]


class Login(Inputs):
    """Members that stand beside the others."""

    user: Given[str | None] = default()
    password: Given[Secret[str] | None] = default()


class Thing(Inputs):
    """One field of each kind."""

    host_name: Given[HostName]
    names: Annotated[GivenList[HostName], NOT_EMPTY]
    size: Given[Annotated[Whole, between(1, 8)]] = default(2)
    seconds: Given[float] = default(1.5)
    ready: Given[bool] = default(False)
    later: Given[LateFlag] = default(False)
    files: GivenMap[File] = default({})
    parts: ListOf[File] = default(())
    login: Flat[Login] = default(Login())
    note: Local[str | None] = default()

    @classmethod
    def conflicts(cls, given: Mapping[str, Any]) -> Iterator[Conflict]:
        if given.get("ready") is True and not given.get("files"):
            yield ("files",), "are required once it is ready"


GOOD: Mapping[str, Any] = {"hostName": "a.test", "names": ["a", "b"]}


def said(values: Mapping[str, Any]) -> dict[str, str]:
    return {problem.path: problem.reason for problem in Thing.problems({**GOOD, **values})}


def test_the_provider_reads_what_a_program_gives() -> None:
    file = File(url=URL, sha256=DIGEST)
    thing = Thing(host_name="a.test", names=("a",), size=3, files={"one": file}, parts=[file], note="ours")
    wire = thing.to_wire()
    assert wire == {
        "hostName": "a.test",
        "names": ["a"],
        "size": 3,
        "seconds": 1.5,
        "ready": False,
        "files": {"one": {"url": URL, "sha256": DIGEST}},
        "parts": [{"url": URL, "sha256": DIGEST}],
    }
    read = Thing.read(wire)
    assert read == Thing(host_name="a.test", names=("a",), size=3, files={"one": file}, parts=(file,))
    assert read.files["one"].url == URL and read.login.user is None


def test_numbers_of_the_wire_are_floats() -> None:
    assert Thing.read({**GOOD, "size": 3.0}).size == 3
    assert said({"size": 2.5}) == {"size": "must be a whole number, not 2.5"}


@pytest.mark.parametrize(
    ("values", "path", "reason"),
    [
        ({"hostName": None}, "hostName", "is required"),
        ({"hostName": ""}, "hostName", "must be a non-empty string, not an empty string"),
        ({"hostName": "a b"}, "hostName", "must be a host name"),
        ({"hostnme": "x"}, "hostnme", "is not known; did you mean `hostName`?"),
        ({"host_name": "x"}, "host_name", "is not known; did you mean `hostName`?"),
        ({"note": "x"}, "note", "is not known"),
        ({"names": []}, "names", "must not be empty"),
        ({"names": "a"}, "names", "must be a list, not a string"),
        ({"names": ["a", 1.0]}, "names[1]", "must be a non-empty string, not a number"),
        ({"size": 9.0}, "size", "must be between 1 and 8, not 9"),
        ({"size": True}, "size", "must be a number, not a boolean"),
        ({"seconds": "5"}, "seconds", "must be a number, not a string"),
        ({"ready": "yes"}, "ready", "must be true or false, not a string"),
        ({"files": {"a b": {"url": URL}}}, 'files["a b"].sha256', "is required"),
        ({"files": {"one": "x"}}, "files.one", "must be a map, not a string"),
        ({"parts": [{"url": "ftp://x", "sha256": DIGEST}]}, "parts[0].url", "must be a URL"),
        ({"user": 1.0}, "user", "must be a non-empty string, not a number"),
        ({"ready": True}, "files", "are required once it is ready"),
    ],
)
def test_a_problem_names_the_property_and_the_remedy(values: Mapping[str, Any], path: str, reason: str) -> None:
    assert {where: why.partition("; known are")[0] for where, why in said(values).items()} == {path: reason}


def test_all_problems_are_told_at_once() -> None:
    wrong = {"hostName": "a b", "ready": True, "sise": 1.0, "parts": [{"url": 1.0}]}
    assert set(said(wrong)) == {"hostName", "files", "sise", "parts[0].url", "parts[0].sha256"}
    with pytest.raises(InvalidInputs, match=r"^spec\.hostName must be a host name; spec\.size must be between"):
        Thing.read({**GOOD, "hostName": "a b", "size": 0.0}, "spec")


def test_no_message_and_no_text_shows_a_secret() -> None:
    told = said({"password": ["hunter2"], "user": {"hunter2": "x"}, "hostName": "hunter2 x"})
    assert set(told) == {"password", "user", "hostName"} and "hunter2" not in str(told)
    assert "hunter2" not in repr(Thing.read({**GOOD, "password": "hunter2"}))


def test_what_is_not_known_yet_passes_everywhere() -> None:
    unknown = {
        "hostName": UNKNOWN, "names": ["a", UNKNOWN], "size": UNKNOWN, "ready": UNKNOWN, "files": {"one": UNKNOWN},
        "parts": [{"url": UNKNOWN, "sha256": DIGEST}], "user": UNKNOWN,
    }  # fmt: skip
    assert Thing.problems(unknown) == []
    assert isinstance(Thing.read(unknown).host_name, Unknown)
    assert Thing.problems({**GOOD, "files": UNKNOWN, "parts": UNKNOWN}) == []
    # Beside what is not known, what is wrong is still found.
    assert [each.path for each in Thing.problems({**unknown, "names": [UNKNOWN, 1.0]})] == ["names[1]"]


def test_a_rehearsal_passes_every_check_of_form() -> None:
    read = Thing.read({**GOOD, "hostName": PLACEHOLDER, "size": PLACEHOLDER, "seconds": PLACEHOLDER})
    assert (read.host_name, read.size, read.seconds) == (PLACEHOLDER, 2, 1.5)
    assert said({"ready": PLACEHOLDER}) == {"ready": "must be true or false, not a string"}


def test_nothing_of_a_state_is_refused() -> None:
    read = Thing.of_state({"hostName": 7.0, "gone": "x", "size": 99.0, "parts": [{"url": "ftp://x", "old": 1.0}]})
    assert (read.host_name, read.names, read.size) == (7.0, None, 99.0)
    assert (read.parts[0].url, read.parts[0].sha256) == ("ftp://x", None)


def test_outputs_of_a_program_pass_and_secrets_are_marked() -> None:
    token = "test:index:Thing"
    recorder = Recorder({token: lambda _: {}})

    def program() -> None:
        later = pulumi.Output.from_input("b.test")
        thing = Thing(host_name=later, names=["a", later], login=Login(user=later, password="hunter2"), later=True)
        pulumi.CustomResource(token, "thing", thing.to_wire())

    run(program, recorder, {})
    (made,) = recorder.of(token)
    found = plain(made.inputs)
    assert found["hostName"] == "b.test" and found["names"] == ["a", "b.test"]
    assert found["user"] == "b.test" and found["later"] is True
    assert is_secret(made.inputs["password"]) and not is_secret(made.inputs["user"])


def test_a_program_learns_at_once_which_argument_is_missing_or_unknown() -> None:
    with pytest.raises(ValidationError, match="names"):
        Thing(host_name="a.test")  # pyright: ignore[reportCallIssue]
    with pytest.raises(ValidationError, match="hostname"):
        Thing(host_name="a.test", names=[], hostname="x")  # pyright: ignore[reportCallIssue]
