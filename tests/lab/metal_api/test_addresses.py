"""Where free blocks are found."""

from __future__ import annotations

import ipaddress
import random

import pytest

from lab.metal_api.ips import addresses
from lab.metal_api.ips.addresses import lowest

RANGE = "10.64.0.0/24"


@pytest.mark.parametrize(
    ("taken", "size", "found"),
    [
        ([], 8, "10.64.0.0/29"),
        (["10.64.0.0/29"], 8, "10.64.0.8/29"),
        (["10.64.0.0/32"], 8, "10.64.0.8/29"),
        (["10.64.0.8/29"], 8, "10.64.0.0/29"),
        (["10.64.0.8/29"], 16, "10.64.0.16/28"),
        (["10.64.0.128/25", "10.64.0.0/25"], 1, None),
        (["10.64.0.255/32"], 256, None),
        (["10.0.0.0/30", "192.0.2.0/24"], 256, "10.64.0.0/24"),
        (["10.0.0.0/8"], 1, None),
        ([], 512, None),
    ],
)
def test_the_lowest_free_block(taken: list[str], size: int, found: str | None) -> None:
    block = lowest(RANGE, size, taken)
    assert (block and str(block)) == found


def test_it_is_what_trying_every_block_finds() -> None:
    chance = random.Random(7)
    within = ipaddress.IPv4Network(RANGE)
    for _ in range(200):
        blocks = [
            ipaddress.IPv4Network((int(within[chance.randrange(256)]), prefix), strict=False)
            for prefix in chance.choices((26, 28, 29, 30, 32), k=chance.randrange(20))
        ]
        prefix = chance.choice((27, 28, 29, 32))
        parts = within.subnets(new_prefix=prefix)
        expected = next((part for part in parts if not any(part.overlaps(block) for block in blocks)), None)
        assert lowest(RANGE, 1 << (32 - prefix), [str(block) for block in blocks]) == expected


def test_each_block_that_is_taken_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    really = addresses._bounds  # pyright: ignore[reportPrivateUsage]

    def bounds(text: str) -> tuple[int, int]:
        nonlocal looks
        looks += 1
        return really(text)

    monkeypatch.setattr(addresses, "_bounds", bounds)
    taken = [f"10.64.{number // 32}.{number % 32 * 8}/29" for number in range(1000)]
    assert str(lowest("10.64.0.0/10", 8, taken)) == "10.64.31.64/29"
    assert looks == len(taken) + 1
