"""Your own servers, through Ironic: enrolled in it by us, or taken from those that it has."""
