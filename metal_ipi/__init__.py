"""What other Pulumi programs take of metal-ipi: components and resources, in any language.

    cluster.py      a whole cluster as one component
    exported.py     which components there are for other languages, and how their arguments come and their outputs go
    construct.py    the engine's Construct: a program in another language makes one of them
    plugin.py       the plugin: the resources of `provider`, and these components
    schema/         describes all of it in the language-neutral way; `python -m metal_ipi.schema` writes
                    provider/schema.json

`components`, `provider` and `stacks` below this package are links to the rooms of the repository. The wheel has them as
folders, so they are imported by the same names here and there.
"""
