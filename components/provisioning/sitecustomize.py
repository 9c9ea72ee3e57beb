"""Keeps what conductors derive from passwords. Python loads this when it starts in their containers, by PYTHONPATH.

Ironic derives a key from a BMC's password each time that it turns to the BMC, by PBKDF2 with 600,000 rounds, to find
the session that it has there (ironic/drivers/modules/redfish/utils.py, SessionCache; 39.0.0). That takes 0.4 s of a
processor, some twenty times for each deployment and once a minute for each server: 150 servers need a processor for
it. The same password gives the same key, so it is derived once. Passwords and keys are kept in the memory of the
process, until it ends or 4096 others were used since; nothing is written anywhere.
"""

import functools
import hashlib
from typing import Any

_derive = hashlib.pbkdf2_hmac
_kept = functools.lru_cache(maxsize=4096)(_derive)


def _pbkdf2_hmac(*args: Any, **kwargs: Any) -> bytes:
    try:
        return _kept(*args, **kwargs)
    except TypeError:  # what cannot be a key of the cache; wrong arguments fail here again
        return _derive(*args, **kwargs)


hashlib.pbkdf2_hmac = _pbkdf2_hmac
