"""The platforms that machines come from, one folder each. Every folder has the same files:

settings   the section `platform` of a stack file: a pydantic model
conflicts  settings that contradict that section
facility   what the section means for the program: provider configuration, preflight, networks
component  declares the component of `components/machines` for the section

A folder may have more files: `redfish/forms`, `equinix_metal/orders`. `section` has what all platforms' settings share,
`contract` the interface of all facilities, and `registry` lists the platforms.
"""
