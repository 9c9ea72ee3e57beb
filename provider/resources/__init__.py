"""The resource types, as programs see them: one module each, with its inputs. Programs import `provider.types`."""
