"""The names of a rack's requests. Imports nothing, because the command line imports it at each start."""

POWERS = ("off", "on", "cycle", "shutdown", "loss", "bmc-reboot")
LOSS_SECONDS = 5.0
"""How long a power loss lasts unless said."""
FAULTS = (
    *("slow", "unavailable", "reset", "session_lost", "certificate", "clock"),
    *("boot_not_honoured", "boot_dropped", "stale_power", "deaf_shutdown"),
    *("away", "raid_refused"),
)
"""See lab.bmc.faults."""
TPMS = ("2.0", "1.2", "off", "none", "untold")
"""What a BMC may tell of its server's trusted module."""
CERTIFICATES = ("expired", "early", "other-name", "other-ca")
