"""`python -m policy.rules.document`, from the project's root: writes docs/policy.md, which describes each rule."""

from __future__ import annotations

import json
from pathlib import Path

from .base import Rule
from .pack import RULES

DOCUMENT = Path("docs") / "policy.md"
_HEAD = """\
# Policies

Policies say what a change to a facility may not do. `policy/` is a Pulumi policy pack. `make preview` and `make up` ask
it before anything is done; so do `pulumi preview --policy-pack policy` and `pulumi up --policy-pack policy` of the
official distribution. Where the engine has no Python language host (the one that set-up builds), the pack is its
executable `policy/pulumi-analyzer-policy-python`, which Pulumi.yaml names.

A change that breaks a rule is refused. The message names the rule and says what to change:

```text
preview failed:
  policy allowed-plans: the worker machines: plan m3.large.x86 is not allowed for the role worker: set
    `metal-ipi:platform.workerPlan` to one of c3.medium.x86, or allow it in the policy configuration
    (allowed-plans.worker)
```

`make up` asks them by a preview. It leaves that out if nothing changed since the last `up` that asked them and
succeeded ([adr/0115](adr/0115-up-asks-the-policies-first-about-what-changed.md)). They are part of the `up` itself,
too.

`make up POLICY=off` asks no policies.

## Configuration

`policy/configuration/<stack>.json`, where there is one; else `lab.json` for stacks of the lab and `default.json` for
all others. With the official distribution: `--policy-pack-config policy/configuration/default.json`. Each rule has an
enforcement level (`mandatory`, `advisory`: told, not refused; `disabled`) and parameters:

```json
{
  "all": "mandatory",
  "allowed-plans": {"worker": ["c3.medium.x86", "m3.large.x86"]},
  "hourly-budget": {"enforcementLevel": "advisory", "maxHourly": 25},
  "protect-stateful": "disabled"
}
```

The engine tells which keys of the configuration are encrypted, not which parts of them: where a part of a section is,
all of it counts as encrypted. In a rehearsal (`make preview` without a state, and every pull request's) the parts are
told apart.

A rule of this pack sees what a preview knows. Values that are known only during the `up`, like userdata, are checked
then, before the resource is made. `destroy` asks no policies: what must stay is protected (`metal-ipi:protect`, true by
default).

## Rules

"""


def text() -> str:
    """The text of the document."""
    return _HEAD + "\n".join(map(_section, RULES))


def _section(rule: Rule) -> str:
    seen = "each resource" if rule.resource is not None else "the stack as a whole"
    lines = [f"### {rule.name}", "", f"{rule.description} Looks at {seen}.", ""]
    if rule.parameters:
        lines += ["| parameter | type | default | |", "|---|---|---|---|"]
        for name, schema in rule.parameters.items():
            type_ = f"list of {schema['items']['type']}s" if schema["type"] == "array" else schema["type"]
            default = f"`{json.dumps(schema['default'])}`" if "default" in schema else ""
            lines.append(f"| `{name}` | {type_} | {default} | {schema['description']} |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    DOCUMENT.write_text(text())
