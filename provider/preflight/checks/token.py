"""Preflight check: is the API token valid, can it see the project, and may it write there?

The API does not tell whether a project's token is read-only. So the check requests something that can never be created:
an SSH key or a project without a name. A token that may write gets the error about the missing name (422), another one
gets a refusal.
"""

from __future__ import annotations

from metal_ipi.provider.metal_client import Refused
from metal_ipi.provider.preflight.findings import Finding, error, ok
from metal_ipi.provider.preflight.subject import Subject

NAME = "token"
_MAY = (400, 422)


async def check(subject: Subject) -> list[Finding]:
    """Returns one finding: the first problem, or that all is well."""
    plan, client = subject.plan, subject.metal.client
    if plan.project_id is not None:
        seen, written = f"/projects/{plan.project_id}", f"/projects/{plan.project_id}/ssh-keys"
        what, setting = f"project {plan.project_id}", "projectId"
    else:
        seen, written = f"/organizations/{plan.organization_id}", f"/organizations/{plan.organization_id}/projects"
        what, setting = f"organization {plan.organization_id}", "organizationId"
    try:
        await client.repeat("GET", seen)
    except Refused as failure:
        return [_refused(failure, what, setting)]
    try:
        await client.repeat("POST", written, json={})
    except Refused as failure:
        if failure.status not in _MAY:
            return [
                error(
                    f"the API token may read {what}, but not write it: {failure.words} (HTTP {failure.status})",
                    "set platform.authToken to a token that is not read-only, of a user who may write there",
                )
            ]
    return [ok(f"the API token reads and writes {what}")]


def _refused(failure: Refused, what: str, setting: str) -> Finding:
    if failure.status == 401:
        return error(
            f"the API token is not valid: {failure.words} (HTTP 401)",
            "set platform.authToken again: the token was deleted, or copied incompletely",
        )
    return error(
        f"the API token does not see {what}: {failure.words} (HTTP {failure.status})",
        f"correct platform.{setting}, or set platform.authToken to a token of that project or organization",
    )
