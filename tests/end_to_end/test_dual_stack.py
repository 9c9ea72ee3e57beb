"""A rack whose machines, pods and services have IPv4 and IPv6, installed from the real installer's files."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.end_to_end.conftest import copies
from tests.end_to_end.project import Project

pytestmark = [pytest.mark.lab, pytest.mark.engine, pytest.mark.nightly]
_STACK = "dualstack"
