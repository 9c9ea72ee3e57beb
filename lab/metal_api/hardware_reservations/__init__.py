"""Hardware reservations: servers that a project has for itself."""
