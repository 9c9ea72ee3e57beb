"""`make import`: reads, converts, writes a stack file, and reports what is left to do."""

from __future__ import annotations

import copy
import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from metal_ipi.stacks.problems import Problem, SettingsError
from metal_ipi.stacks.settings import Settings, parse
from tools import stackfile
from tools.errors import StackError
from tools.importing import cluster, documents, hosts
from tools.importing.documents import Document, Tree
from tools.importing.fields import AGENT_CONFIG, INSTALL_CONFIG
from tools.importing.taking import Place, Taking, check, put
from tools.layout import Layout
from tools.stackfile import NAMESPACE

_CHOSEN = (
    ("platform.type", "redfish", "servers are reached by their BMCs; ironic and equinix-metal are the other types"),
    (
        "dns.type",
        "none",
        "as with the installer, you set the DNS records (docs/dns.md); with other types `up` sets them",
    ),
    (
        "artifacts.type",
        "ssh",
        "servers fetch their boot files from your web server (docs/boot-server.md); s3 is the other type",
    ),
)
"""Settings that the installer's files never contain: setting, chosen value, explanation."""
_STACK = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")


@dataclass(frozen=True, kw_only=True)
class Imported:
    """A written stack file, and the report about it."""

    path: Path
    told: str


class _Dumper(yaml.SafeDumper):
    """A YAML dumper that writes multi-line texts as blocks, and indents lists."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        return super().increase_indent(flow, indentless=False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)  # pyright: ignore[reportUnknownMemberType]


_Dumper.add_representer(str, _text)


def write(
    root: Path, stack: str | None, install_config: Path, agent_config: Path | None, *, overwrite: bool
) -> Imported:
    """Writes the stack file of a project. `stack` None: the stack gets the cluster's name.

    Raises StackError if a file cannot be read, if there is no name, or if the stack file exists.
    """
    if install_config == Path():
        raise StackError("no file is named", remedy="name it: make import INSTALL_CONFIG=install-config.yaml")
    files = [documents.read(install_config), *([documents.read(agent_config)] if agent_config is not None else [])]
    name = stack or str(files[0].at("metadata.name") or "")
    if not _STACK.fullmatch(name):
        raise StackError(
            f"'{name}' cannot be a stack's name",
            why="STACK names it, else metadata.name of install-config.yaml; it is a part of the stack file's name",
            remedy="name it: make import STACK=ny5 INSTALL_CONFIG=...",
        )
    path = Layout(root=root, stack=name).stack_file
    taking = take(*files)
    report = "\n".join(_report(taking, files, name, missing(taking, name)))
    try:
        with path.open("w" if overwrite else "x") as file:
            file.write(render(taking, files))
    except FileExistsError:
        raise StackError(
            f"stacks/{path.name} exists already, and was not changed",
            why="it may have been edited, or contain secrets",
            remedy="name another stack (STACK=...), or overwrite it (OVERWRITE=1)",
        ) from None
    return Imported(path=path, told=report)


def take(install_config: Document, agent_config: Document | None = None) -> Taking:
    """Converts both files. Raises StackError with all values of a wrong type."""
    taking = Taking()
    install = Place(document=install_config, where="")
    agent = Place(document=agent_config, where="") if agent_config is not None else None
    known = [(install_config, INSTALL_CONFIG)]
    if agent_config is not None:
        known.append((agent_config, AGENT_CONFIG))
    for document, fields in known:
        check(document, fields)
    for setting, value, why in _CHOSEN:
        taking.choose(setting, value, why)
    sizes = cluster.take(taking, install, agent)
    listed = hosts.take(taking, install, agent, sizes)
    if not listed:
        taking.put("controlPlane.count", sizes.control_plane, *_given(sizes, "controlPlane"))
        if sizes.arbiters:
            taking.put("arbiter.count", sizes.arbiters, *_given(sizes, "arbiter"))
        taking.put("workers.count", sizes.workers, *_given(sizes, "workers"))
    platform: Tree = taking.settings["platform"]
    networking = install.below("networking")
    cluster.machine_network(taking, networking, platform.get("prefix"), platform.get("gateway", ""))
    cluster.addresses(taking, install.below("platform").below("baremetal"))
    if agent is not None:
        _of_agent(taking, install, agent)
    for document, fields in known:
        taking.rest(document, fields)
    return taking


def _given(sizes: cluster.Sizes, section: str) -> list[Place]:
    return [sizes.places[section]] if section in sizes.places else []


def _of_agent(taking: Taking, install: Place, agent: Place) -> None:
    name, url = agent.below("metadata").below("name"), agent.below("bootArtifactsBaseURL")
    if name.text == install.below("metadata").below("name").text:
        taking.done(name)
    elif name.text:
        taking.tell(name, "the cluster is called as install-config says")
    if url.text:
        taking.put(f"artifacts.{'baseUrl' if url.text.startswith('https:') else 'bootBaseUrl'}", url.text, url)


def render(taking: Taking, files: Iterable[Document]) -> str:
    """The text of the stack file."""
    known = [field.alias or name for name, field in Settings.model_fields.items()]
    settings = sorted(taking.settings.items(), key=lambda item: known.index(item[0]))
    config = {f"{NAMESPACE}:{name}": value for name, value in settings}
    names = " and ".join(file.path.name for file in files)
    head = f"# Made by `make import` of {names}. Secrets are set by whoever runs it.\n"
    return head + yaml.dump({"config": config}, Dumper=_Dumper, sort_keys=False, width=4096, default_flow_style=None)


def missing(taking: Taking, stack: str) -> tuple[Problem, ...]:
    """The problems of the settings that remain when the secrets are set: missing or wrong ones.

    The validation finds contradictions only if nothing is missing. As the release is always missing, the validation
    runs once without and once with one.
    """
    tree = copy.deepcopy(taking.settings)
    for setting, place in taking.secrets.items():
        put(tree, setting, place.text)
    found: dict[tuple[str, str], Problem] = {}
    for release in ({}, {"openshiftVersion": "4.19.0"}):
        document: Tree = {"config": {f"{NAMESPACE}:{name}": value for name, value in {**tree, **release}.items()}}
        try:
            parse(stackfile.values(stackfile.Config(document=document)), stack)
        except SettingsError as error:
            found |= {(problem.path, problem.why): problem for problem in error.problems}
    return tuple(found[key] for key in sorted(found))


def _report(taking: Taking, files: list[Document], stack: str, problems: tuple[Problem, ...]) -> Iterator[str]:
    names = [file.name for file in files]
    taken = f"{taking.taken} fields of {' and '.join(names)}"
    yield f"stacks/Pulumi.{stack}.yaml is written: {taken} are copied as they are"
    alike: dict[tuple[str, str, str], list[Place]] = {}
    for each in sorted(taking.told, key=lambda each: (names.index(each.place.document.name), each.place.line)):
        field = re.sub(r"\[\d+\]", "[]", each.place.where)
        alike.setdefault((field, each.why, each.remedy), []).append(each.place)
    if alike:
        yield "\nNot converted, or not copied as it is:"
    for (field, why, remedy), places in alike.items():
        lines = ", ".join(dict.fromkeys(str(place.line) for place in places))
        yield from (f"  {places[0].document.name}:{lines} {field}", f"      {why}", f"      -> {remedy}")
    yield "\nChosen, because no file contains it; change it if you want something else:"
    for each in taking.chosen:
        yield from (f"  {NAMESPACE}:{each.setting} = {each.value}", f"      {each.why}")
    if taking.secrets:
        yield "\nSecrets, which are not in the stack file. Set them once the stack exists (`pulumi stack init`):"
    for setting, place in taking.secrets.items():
        read = shlex.join([".venv/bin/python", "-m", "tools.importing", str(place.document.path), place.where])
        yield f"  {read} |\n    pulumi config set --stack {stack} --secret --path '{NAMESPACE}:{setting}'"
    if problems:
        yield f"\nStill missing or wrong in the stack file ({len(problems)}):"
    else:
        yield f"\nNothing is missing: `make preview STACK={stack}` shows what `up` does"
    for number, problem in enumerate(problems, start=1):
        source = taking.source(problem.path.partition(":")[2])
        yield f"  {number}. {problem}" + (f"\n      from {source}" if source is not None else "")
