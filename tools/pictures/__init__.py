"""Pictures of a cluster, as SVG text: what it is made of (`topology`), and how the last `up` went (`timeline`).

    topology.svg(model.from_state(resources))    the resources of an exported state
    topology.svg(model.from_events(events))      the engine's events of a preview, with what it would change
    timeline.svg(run)                            the record of an `up`

All of it is pure functions from data to text; only `make` reads and writes files. No secret is ever drawn: of each
resource only what `model` names is looked at, and what is marked as secret there is masked.
"""
