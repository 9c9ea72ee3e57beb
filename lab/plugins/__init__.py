"""Stand-ins for the provider plug-ins `equinix-metal`, `command` and `kubernetes`, which no package registry carries.

They implement what the project's stacks use, and refuse all else by name.

They are used only where the official plug-ins are not installed, and speak the same schema: what one has made, the
other goes on with. `pulumi-resource-*` beside this file are the executables; the official SDKs and the real engine talk
to them.

    base            gRPC server, errors, log messages, requests handed to resource types
    fields          inputs described as data, and checked against the description
    values          the engine's values and plain data, and where two of them differ
    command         `local.Command`
    equinix_metal   the resource types and functions that the program uses: see docs/stand-ins.md
    kubernetes      Namespace, Secret, custom resources; differences are in its own docstring

All of kubernetes follows the source of the official plug-in and was not run beside it. The others were compared with
the official plug-ins, request by request and under the engine: command 1.2.1 (its source at 010bd8e0) and equinix-metal
3.2.1 (as released, on pulumi-terraform-bridge 3.11, and its resources on a newer bridge, 3.61; both on
terraform-provider-metal f3d7fe9ae128), the latter also against the emulated API: what came out stands in
docs/stand-ins.md.

| What | Official | Stand-in |
|---|---|---|
| other resource types and functions | done | refused by name; so is GetSchema |
| wrong inputs | one message in Terraform's or Go's words | property, what is wrong, nearest known name |
| unexpected fault | stack trace or panic | one sentence, the trace on the plug-in's stderr |
| engine killed with -9 | plug-in still there after 20 s | gone after 1.1 s, what ran is cancelled |
| started after | 0.04 to 0.07 s | 0.21 s (httpx: 0.05 s more, at the first use) |
| command: update, delete, assetPaths, archivePaths, interpreter | done | refused by name |
| command: the previous output as variables | given unless refused | must be refused (`addPreviousOutputInEnv`) |
| command: `logging` with an unknown value | taken, logs nothing | refused |
| command: failing, its text secret | tells the text | tells «a secret command» |
| command: cancelled | the shell is killed | its whole process group is ended |
"""
