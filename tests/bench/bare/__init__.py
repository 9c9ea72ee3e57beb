"""The yardstick: a program that only registers trivial resources, with a trivial plug-in, on the engine we use."""
