"""What other Pulumi programs take of metal-ipi: components and resources, in any language.

    cluster.py      a whole cluster as one component
    exported.py     which components there are for other languages, and how their arguments come and their outputs go
    construct.py    the engine's Construct: a program in another language makes one of them
    plugin.py       the plugin: the resources of `provider`, and these components
    schema/         describes all of it in the language-neutral way; `python -m metal_ipi.schema` writes
                    provider/schema.json

In a wheel the rooms that it needs lie below this package (setup.py): `metal_ipi.components`, `metal_ipi.provider`,
`metal_ipi.stacks`.
"""
