"""What other Pulumi programs use of metal-ipi: components and resources, in any language.

    cluster.py      a whole cluster as one component
    exported.py     the components for other languages
    annotations.py  the types of their arguments and outputs
    construct.py    the engine's Construct call: a program in another language makes a component
    plugin.py       the plugin: the resources of `provider`, and these components
    schema/         describes all of it as a Pulumi schema; `python -m metal_ipi.schema` writes
                    provider/schema.json

`components`, `provider` and `stacks` in this package are links to the rooms of the repository. The wheel contains them
as folders, so they are imported by the same names in both.
"""
