"""Where machines come from, a folder for each platform. Every folder has the same files:

settings   the section `platform` of a stack file: a pydantic model
conflicts  what cannot go together with that section
facility   what the section means to the program: provider configuration, preflight, networks
component  the component of `components/machines` that the section declares

A folder may have more of its own: `redfish/forms`, `equinix_metal/orders`. `section` is what all settings share,
`contract` what all facilities answer, and `registry` lists the platforms.
"""
