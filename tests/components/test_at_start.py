"""What Python loads in a conductor's container: keys that are derived from passwords are derived once."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from metal_ipi.components.provisioning import conductors

pytestmark = pytest.mark.programs

_PROGRAM = """
import hashlib, sitecustomize

def key(password, **more):
    return hashlib.pbkdf2_hmac("sha256", password, b"salt", 2, **more).hex()

assert key(b"password") == key(b"password") == "ae4d0c95af6b46d32d0adff928f06dd02a303f8ef3c251dfd6e2d85a95474c43"
assert sitecustomize._kept.cache_info().hits == 1
assert key(b"password", dklen=16) == key(b"password")[:32] and key(b"another") != key(b"password")
assert key(bytearray(b"password")) == key(b"password"), "what cannot be kept is derived"
try:
    hashlib.pbkdf2_hmac("sha256")
except TypeError:
    print("good")
"""


def test_a_key_is_derived_once_and_is_the_same(tmp_path: Path) -> None:
    shutil.copy(conductors.AT_START, tmp_path)
    command = [sys.executable, "-c", _PROGRAM]
    found = subprocess.run(command, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert (found.stdout, found.returncode) == ("good\n", 0), found.stderr
