"""BGP of projects and devices."""
