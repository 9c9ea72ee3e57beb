"""What NetworkManager's own library makes of a keyfile on standard input: D-Bus settings, in GVariant's text form.

A process of its own, for a library that is misused ends the process.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import sys

_DIRECTORY = b"/etc/NetworkManager/system-connections"
_WARNING = 1
"""NM_KEYFILE_HANDLER_TYPE_WARN."""
_POINTER = ctypes.c_void_p
_HANDLER = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, _POINTER, ctypes.c_int, _POINTER, _POINTER)


def main() -> str | None:
    """Print what the keyfile means; the answer is what is wrong with it."""
    text = sys.stdin.buffer.read()
    glib, nm = (ctypes.CDLL(ctypes.util.find_library(name)) for name in ("glib-2.0", "nm"))
    for function in (glib.g_key_file_new, nm.nm_keyfile_read, nm.nm_connection_to_dbus):
        function.restype = _POINTER
    glib.g_variant_print.restype = ctypes.c_char_p
    warnings: list[str] = []

    def handle(_keyfile: int, _connection: int, kind: int, data: int, _user: int) -> int:
        message = ctypes.c_char_p()
        if kind == _WARNING:
            nm.nm_keyfile_handler_data_warn_get(_POINTER(data), ctypes.byref(message), None)
            warnings.append((message.value or b"").decode())
        return 1

    keyfile = _POINTER(glib.g_key_file_new())
    if not glib.g_key_file_load_from_data(keyfile, text, ctypes.c_size_t(len(text)), 0, None):
        return "it is not a key file"
    read = nm.nm_keyfile_read(keyfile, _DIRECTORY, 0, _HANDLER(handle), None, None)
    if not read:
        return "it is not a connection"
    connection = _POINTER(read)
    if warnings or not nm.nm_connection_normalize(connection, None, None, None):
        return f"it is not valid: {'; '.join(warnings)}"
    print(glib.g_variant_print(_POINTER(nm.nm_connection_to_dbus(connection, 0)), 0).decode())
    return None


if __name__ == "__main__":
    sys.exit(main())
