"""Pictures of a cluster as SVG: its parts (`topology`), and the course of the last `up` (`timeline`).

    topology.svg(model.from_state(resources))    from the resources of an exported state
    topology.svg(model.from_events(events))      from the engine's events of a preview, with the planned changes
    timeline.svg(run)                            from the record of an `up`

All of it is pure functions from data to text; only `commands` reads and writes files. Pictures never contain secrets:
`model` reads only the properties that it names, and masks those that are marked as secret.
"""
