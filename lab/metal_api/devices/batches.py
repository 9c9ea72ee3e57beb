"""Devices that are ordered together: all of them, or none."""

from __future__ import annotations

from lab.metal_api.body import Body
from lab.metal_api.devices import ordering
from lab.metal_api.devices.models import Batch, Device
from lab.metal_api.exceptions import Unprocessable
from lab.metal_api.records import Json
from lab.metal_api.state import Account

_OWN = ("quantity", "hostnames")
MOST = 100
"""Devices in a batch. The real limit is not written down anywhere we know of."""


def order(account: Account, project_id: str, document: Json) -> list[Batch]:
    """The devices of some batches, added to the account in state `queued`.

    Those of a batch with one host name are numbered behind it; else there must be as many names as devices, or none.
    """
    body = Body(document)
    wanted = body.objects("batches")
    body.check()
    if not wanted:
        raise Unprocessable("Batches can't be blank")
    made, devices = list[Batch](), account.table(Device)
    try:
        for entry in wanted:
            batch = Batch(
                id=account.chance.uuid(), project_id=project_id, quantity=0, device_ids=[], created_at=account.now()
            )
            made.append(batch)
            for order in _orders(entry):
                device = ordering.order(account, project_id, order)
                devices.add(device)
                batch.device_ids.append(device.id)
            batch.quantity = len(batch.device_ids)
    except Exception:
        for batch in made:
            for identity in batch.device_ids:
                del devices[identity]
        raise
    for batch in made:
        account.table(Batch).add(batch)
    return made


def _orders(entry: Json) -> list[Json]:
    body = Body(entry)
    names, quantity = body.texts("hostnames") or [], body.integer("quantity", least=1)
    quantity = (len(names) or 1) if quantity is None else quantity
    if quantity > MOST:
        body.problems.append(f"Quantity must be less than or equal to {MOST}")
    elif len(names) == 1 and quantity > 1:
        names = [f"{names[0]}-{number}" for number in range(quantity)]
    elif names and len(names) != quantity:
        body.problems.append("Hostnames must be as many as quantity says")
    body.check()
    common = {name: value for name, value in entry.items() if name not in _OWN}
    return [{**common, "hostname": name} for name in names] or [common] * quantity
