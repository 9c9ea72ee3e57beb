"""The Pulumi provider plugin of metal-ipi. Programs import `provider.types` only."""
