"""The resource types as programs use them: one module per type, with its inputs. Programs import `provider.types`."""
