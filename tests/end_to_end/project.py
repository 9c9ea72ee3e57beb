"""A copy of the project, with a `.state` of its own: commands run there as a user runs them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any, cast

import yaml

from lab.bmc import control
from lab.layout import Layout
from lab.metal_api import store
from lab.supervision import Supervisor
from tests.end_to_end import processes
from tests.end_to_end.processes import Process
from tools import stackfile
from tools.state import Deployment

ROOT = Path(__file__).resolve().parents[2]
_FOREIGN = re.compile(
    r"MAKE|MAKEFLAGS|MAKELEVEL|MFLAGS|STACK|MACHINES|POLICY|POOLS.*|PULUMI_.*|METAL_.*|SSL_CERT_.*|PYTEST_.*|PYTHONDONTWRITEBYTECODE"
)
"""Variables of whoever runs the tests, that would reach the commands under test."""
_TERMINAL = {"FORCE_COLOR": "1", "NO_COLOR": "1", "TERM": "xterm", "COLUMNS": "300"}
"""Has rich write as for a terminal, also to a file."""
_LONGEST = 300.0
RACK = "rack7"
"""The stack of servers with BMCs."""
SINGLE = "sno1"
"""The stack of one such server, which bootstraps itself."""


@dataclass(frozen=True, kw_only=True)
class Done:
    """A command that has ended."""

    status: int
    out: str
    """What it printed on standard output."""
    told: str
    """What it printed on standard error."""
    seconds: float

    @property
    def text(self) -> str:
        """All it printed."""
        return self.out + self.told


def await_(true: Callable[[], Any], what: str, seconds: float = 120.0) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        time.sleep(0.3)


class Run:
    """A command that is running; what it prints goes to files."""

    def __init__(self, project: Path, command: Sequence[str], env: Mapping[str, str]) -> None:
        self._files = [project.with_name(f"{project.name}.{name}") for name in ("out", "err")]
        self.command = " ".join(command)
        self.started = time.monotonic()
        with self._files[0].open("wb") as out, self._files[1].open("wb") as err:
            self._process = subprocess.Popen(
                list(command), env=dict(env), cwd=project, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                start_new_session=True,
            )  # fmt: skip

    @property
    def pid(self) -> int:
        """Its first process."""
        return self._process.pid

    def printed(self) -> str:
        """All it printed until now."""
        return "".join(file.read_text(errors="replace") for file in self._files)

    def over(self) -> bool:
        """Whether it has ended."""
        return self._process.poll() is not None

    def until(self, condition: Callable[[], object], what: str, seconds: float = _LONGEST) -> None:
        """Wait until something is so; fails where it ends before, or nothing comes of it."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert not self.over(), f"it ended before this was seen: {what}\n{self.printed()}"
            assert time.monotonic() < deadline, f"not seen within {seconds:.0f} s: {what}\n{self.printed()}"
            time.sleep(0.002)

    def kill(self, lab: Process | None) -> Done:
        """kill -9 of all that it started, but not of the lab, of which `lab` is the first process."""
        spared = processes.family(lab.pid) if lab else []
        victims = [each for each in processes.family(self.pid) if each not in spared]
        processes.kill(victims)
        done = self.wait(60)
        assert done.status != 0, done.text
        left = processes.survivors(victims)
        assert not left, left
        return done

    def wait(self, seconds: float = _LONGEST) -> Done:
        """Wait for its end; one that does not come is killed, and fails the test."""
        try:
            status = self._process.wait(max(seconds, 0.1))
        except subprocess.TimeoutExpired:
            processes.kill(processes.family(self.pid))
            self._process.wait()
            raise AssertionError(f"{self.command} did not end in {seconds:.0f} s:\n{self.printed()}") from None
        out, told = (file.read_text(errors="replace") for file in self._files)
        return Done(status=status, out=out, told=told, seconds=time.monotonic() - self.started)


class Project:
    """The copy."""

    def __init__(
        self, root: Path, machines: str = "simulated", stack: str = "lab", variant: Mapping[str, Any] | None = None
    ) -> None:
        """`variant` are changes to the committed stack file that stay, as `configure` takes them."""
        self.root = root
        self.machines = machines
        self.stack = stack
        self.policies = False
        """Whether policies are asked: each time they take as long as a preview."""
        self.layout = Layout.of(root / ".state" / "lab")
        copy(ROOT, root)
        self._own = self.root / "stacks" / f"Pulumi.{stack}.yaml"
        self._original = self._own.read_text()
        self.configure(**(variant or {}))
        self._original = self._own.read_text()

    # --- commands

    def environment(self) -> dict[str, str]:
        """A user's environment."""
        own = {} if self.policies else {"POLICY": "off"}
        return {**{name: value for name, value in os.environ.items() if not _FOREIGN.fullmatch(name)}, **own}

    def start(self, target: str, *options: str, live: bool = False) -> Run:
        """Start a make target; `live`: with what a terminal shows of things under way, about twice a second."""
        options = (f"STACK={self.stack}", f"MACHINES={self.machines}", *options)
        return Run(self.root, ["make", "-s", target, *options], {**self.environment(), **(_TERMINAL if live else {})})

    def make(self, target: str, *options: str, fails: bool = False, seconds: float = _LONGEST) -> Done:
        """Run a make target to its end, which must be good (or, with `fails`, bad)."""
        done = self.start(target, *options).wait(seconds)
        assert (done.status != 0) == fails, f"make {target} ended with {done.status}:\n{done.text}"
        return done

    def offline(self, target: str, *options: str) -> Done:
        """Run a make target as somebody without credentials does, where there is nothing but loopback."""
        env = {name: os.environ[name] for name in ("PATH", "HOME", "XDG_CACHE_HOME") if name in os.environ}
        user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
        alone = ["unshare", *user, "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
        done = Run(self.root, [*alone, "make", "-s", target, *options], env).wait(60)
        assert done.status == 0, done.text
        return done

    def assert_unchanged(self, *targets: str) -> None:
        """Commands that find nothing to do: those named, else an `up`, before and after a refresh, and a preview."""
        for target in targets or ("preview", "up", "refresh", "up"):
            assert f"{target}: no changes" in self.make(target).out, target

    def assert_down(self) -> Done:
        """Take the stack and the lab down; nothing is left of either."""
        done = self.make("down")
        assert "nothing is left of the lab: no device, key, record, process, namespace, mount or file" in done.text
        assert self.left() == []
        return done

    def commit(self) -> None:
        """Put the copy under version control."""
        self.git("init", "--quiet")
        (self.root / ".git" / "info" / "exclude").write_text(".venv\n")
        self.restore()
        self.git("add", "--all")
        self.git("-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "--quiet", "-m", "all")

    def git(self, *arguments: str) -> str:
        """What git prints."""
        command = ["git", *arguments]
        return subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=True).stdout

    def lab(self, *arguments: str) -> str:
        """Run a command of the lab's own, on this project's; returns what it printed."""
        command = [str(self.root / ".venv/bin/python"), "-m", "lab", arguments[0], "--state", str(self.layout.state)]
        done = Run(self.root, [*command, *arguments[1:]], self.environment()).wait()
        assert done.status == 0, done.text
        return done.out

    def start_lab(self) -> None:
        """Start the lab alone, so that faults can be set before the installation begins."""
        document: Any = yaml.safe_load(self._own.read_text())
        servers = stackfile.rack(document)
        rack = ["--rack", str(servers)] if servers else []
        more = ["--small-kubernetes"] if stackfile.wants_small_kubernetes(document) else []
        more += ["--disconnected"] if stackfile.is_disconnected(document) else []
        more += ["--day-two"] if stackfile.has_day_two(document) else []
        more += ["--openshift", stackfile.lab_installer(document)]
        command = [str(self.root / ".venv/bin/python"), "-m", "lab", "up", "--machines", self.machines, *rack, *more]
        done = Run(self.root, [*command, "--state", str(self.layout.state)], self.environment()).wait()
        assert done.status == 0, done.text

    def output(self) -> dict[str, Any]:
        """What `make -s output` prints."""
        return json.loads(self.make("output").out)

    # --- configuration

    def configure(self, **changes: Any) -> None:
        """Write the committed stack file with changes: `workers={"count": 3}` is metal-ipi:workers.count."""
        document = cast("dict[str, Any]", yaml.safe_load(self._original))
        for name, value in changes.items():
            present = document["config"].get(f"metal-ipi:{name}")
            both = isinstance(present, dict) and isinstance(value, dict)
            document["config"][f"metal-ipi:{name}"] = {**present, **value} if both else value
        self._own.write_text(yaml.safe_dump(document, sort_keys=False))

    def keep(self, **changes: Any) -> None:
        """Have `configure` begin with these changes from now on: the stack file that everything is taken down with."""
        self.configure(**changes)
        self._original = self._own.read_text()

    def discard(self) -> str:
        """Say that no cluster was formed with the assets that there are, as a preview tells how; what it printed."""
        told = self.make("preview", fails=True).text
        found = re.search(r"install\.discard to (assets-[0-9a-f]{8})", told)
        assert found, told
        self.keep(install={"discard": found[1]})
        return told

    def restore(self) -> None:
        """Put the committed stack file back."""
        self._own.write_text(self._original)

    # --- what is there

    def inside(self, *arguments: str, stdin: str = "", seconds: float = 60) -> str:
        """Run `inside.py` in the lab's network; returns what it printed."""
        return self.within("inside", str(self.layout.state), *arguments, stdin=stdin, seconds=seconds)

    def listing(self) -> dict[str, list[str]]:
        """What there is that costs, in every project, by kind, as the API's official client lists it."""
        return json.loads(self.within("listing", str(self.layout.state)))

    def within(self, module: str, *arguments: str, stdin: str = "", seconds: float = 60) -> str:
        """What a module of this package prints in the facility's network."""
        return self.facility(
            sys.executable, "-m", f"tests.end_to_end.{module}", *arguments, stdin=stdin, seconds=seconds
        )

    def facility(self, *command: str, stdin: str = "", seconds: float = 60) -> str:
        """What a command prints in the facility's network."""
        done = subprocess.run(
            [sys.executable, "-m", "lab", "run", "--state", str(self.layout.state), "--", *command],
            cwd=self.root, env=self.environment(), input=stdin,
            capture_output=True, text=True, timeout=seconds, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def http_status(self, url: str) -> str:
        """The status of an answer from the facility, whoever signed its certificate; `000` if nobody answers."""
        return self.facility("sh", "-c", f"curl -sk -m 3 -o /dev/null -w '%{{http_code}}' {url} || true")

    def holdings(self) -> dict[str, Any]:
        """What the facility holds, by its API and a zone transfer."""
        return json.loads(self.inside("holdings"))

    def devices(self) -> dict[str, str]:
        """Id by host name of the devices that the API lists, each of which is there once."""
        found = self.holdings()["devices"]
        assert len({device["hostname"] for device in found}) == len(found), found
        return {device["hostname"]: device["id"] for device in found}

    def booted(self) -> dict[str, list[str]]:
        """What each server of the rack has booted since the lab began, by the lab's name."""
        return {name: server["boots"] for name, server in self.rack("servers").items()}

    def faults(self, *faults: dict[str, Any]) -> None:
        """Replace the faults that the facility has."""
        self.inside("faults", json.dumps(faults))

    def rack(self, do: str, **words: Any) -> dict[str, Any]:
        """Ask the lab's rack, as `python -m lab power`, `fault`, `clear-faults` and `rack` do; answers its servers."""
        return control.ask(self.layout, {"do": do, **words})

    def hits(self) -> list[int]:
        """How often each of the faults struck."""
        return [fault["hits"] for fault in json.loads(self.inside("hits"))]

    @property
    def state(self) -> Path:
        """The directory of the stack's state."""
        return self.root / ".state" / "stacks" / self.stack

    @property
    def checkpoint(self) -> Path:
        """The engine's own file."""
        return self.state / "backend" / ".pulumi" / "stacks" / "metal-ipi" / f"{self.stack}.json"

    def account(self) -> dict[str, list[dict[str, Any]]]:
        """What the lab's Metal API has kept, by kind; nothing before it has."""
        path = self.layout.state / "metal_api" / "account.jsonl"
        tables = store.read(path) if path.exists() else {}
        return {name: list(records.values()) for name, records in tables.items()}

    def deployment(self) -> dict[str, Any]:
        """The engine's state, secrets encrypted."""
        return json.loads(self.checkpoint.read_text())["checkpoint"]["latest"] or {}

    def known_ids(self) -> set[str]:
        """The ids of all that is in the states of the facility's stacks, and of machines that they name."""
        states = [
            json.loads(file.read_text())["checkpoint"]["latest"] or {} for file in self.checkpoint.parent.glob("*.json")
        ]
        return set().union(*(Deployment(document={"deployment": state}).ids() for state in states))

    def uploaded(self) -> list[str]:
        """The names of all files on the boot server that were uploaded."""
        directory = self.layout.state / "boot" / "artifacts"
        return sorted(path.name for path in directory.rglob("*") if path.is_file())

    def supervisor(self) -> Process | None:
        """The lab's first process."""
        found = Supervisor.find(self.layout.lock)
        if found is None:
            return None
        os.close(found.pidfd)
        return processes.process(found.pid)

    def left(self) -> list[str]:
        """What there is of this copy beside its files, and of its state beside gathered logs."""
        found = [f"process {each.pid}: {' '.join(each.command)}" for each in processes.mentioning(self.root)]
        state = self.root / ".state"
        found += [f"file {path}" for path in state.rglob("*") if not path.is_relative_to(state / "logs")]
        mounts = Path("/proc/self/mountinfo").read_text()
        return found + [f"mount {line}" for line in mounts.splitlines() if str(self.root) in line]

    def close(self) -> None:
        """Take everything down, whatever state a failed test left; raises AssertionError when something stays."""
        try:
            self.configure()
            if self.supervisor() is not None:
                self._clear()
            done = self.start("down").wait()
            assert done.status == 0, f"make down ended with {done.status}:\n{done.text}"
            left = self.left()
            assert not left or left == [f"file {self.root / '.state' / 'logs'}"], left
        finally:
            supervisor = self.supervisor()
            processes.kill([*([supervisor] if supervisor else []), *processes.mentioning(self.root)])
            shutil.rmtree(self.root / ".state", ignore_errors=True)

    def _clear(self) -> None:
        """No faults any more, of the Metal API or of BMCs."""
        if self.layout.rack.exists():
            self.rack("clear", server="all")
        else:
            self.faults()


def copy(source: Path, root: Path) -> None:
    """Copy a project as it is in the work tree: what git tracks, and what is new there and not ignored."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=source, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        file, target = source / name, root / name
        if file.exists():  # deleted in the work tree, not in the index
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, target, follow_symlinks=False)
            compiled = Path(cache_from_source(str(file)))
            if file.suffix == ".py" and compiled.exists():  # a user's first command has compiled it for all others
                cached = Path(cache_from_source(str(target)))
                cached.parent.mkdir(exist_ok=True)
                shutil.copy2(compiled, cached)
    # Plug-ins look for it at the project's root; this way they run as they do for a user.
    (root / ".venv").symlink_to(sys.prefix, target_is_directory=True)
