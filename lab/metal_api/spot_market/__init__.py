"""The spot market: prices, and requests for machines as long as they are cheap enough."""
