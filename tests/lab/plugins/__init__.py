"""The stand-ins for provider plug-ins: in process, as executables, and under the real engine."""
