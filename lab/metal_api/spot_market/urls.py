"""Routes of the spot market."""

from __future__ import annotations

from lab.metal_api.operations import Lab, Urls
from lab.metal_api.spot_market.models import SpotMarketRequest
from lab.metal_api.spot_market.responses import Responses, document


def urls(lab: Lab) -> Urls:
    """Path → method → operation."""
    market = Responses(lab)
    table = lab.account.table(SpotMarketRequest)
    lab.documents["spot-market-requests"] = lambda identity: document(lab.account, table.find(identity))
    return [
        ("/market/spot/prices", {"GET": market.facility_prices}),
        ("/market/spot/prices/metros", {"GET": market.metro_prices}),
        ("/projects/{id}/spot-market-requests", {"GET": market.list_of_project, "POST": market.create}),
        ("/spot-market-requests/{id}", {"GET": market.show, "DELETE": market.delete}),
    ]


def control(lab: Lab) -> Urls:
    """The lab's own routes, below /lab."""
    market = Responses(lab)
    return [("/spot-prices", {"POST": market.set_price}), ("/spot-evictions", {"POST": market.evict})]
