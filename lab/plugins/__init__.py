"""Stand-ins for the provider plug-ins `equinix-metal`, `command` and `kubernetes`, which no package registry carries.

They are used only where the official plug-ins are not installed, and speak the same schema: what one has made, the
other goes on with. `pulumi-resource-*` beside this file are the executables; the official SDKs and the real engine talk
to them.

    base            gRPC server, errors, log messages, one class per resource type
    fields          inputs described as data, and checked against the description
    differences     where values differ, as paths
    values          the engine's values and plain data
    command         `local.Command`, `remote.Command`
    equinix_metal   `Device`, `Project`, `ProjectSshKey`, `SshKey`, `ReservedIpBlock`, `IpAttachment`, `BgpSession`
    kubernetes      Namespace, Secret, ConfigMap, custom resources; differences are in its own docstring

Addresses, BGP sessions and all of kubernetes follow the sources of the official plug-ins and were not run beside them.
The others were compared with the official plug-ins, request by request and under the engine: command 1.2.1 (its source
at 010bd8e0) and equinix-metal 3.2.1 (the same resources on a newer bridge: pulumi-equinix-metal at 5565109 on
pulumi-terraform-bridge 3.61, terraform-provider-metal f3d7fe9ae128). A stack of eight resources made by the one showed
no change under the other, in both directions, also after a refresh by either; the two states were equal except for ids
and generated names.

| What | Official | Stand-in |
|---|---|---|
| anything but the resource types above | done | refused by name; so are GetSchema and functions |
| wrong inputs | one message in Terraform's or Go's words | property, what is wrong, nearest known name |
| unexpected fault | stack trace or panic | one sentence, the trace on the plug-in's stderr |
| engine killed with -9 | plug-in still there after 20 s | gone after 1.1 s, what ran is cancelled |
| started after | 0.04 to 0.07 s | 0.21 s (httpx: 0.05 s, asyncssh: 0.2 s more, at the first use) |
| command: assetPaths, archivePaths, proxy | done | refused by name |
| command: `logging` with an unknown value | taken, logs nothing | refused |
| command: failing, its text secret | tells the text | tells «a secret command» |
| command: cancelled | the shell is killed | its whole process group is ended |
| command: environment over SSH refused | fails, telling AcceptEnv | the same |
| command: `perDialTimeout` | of the TCP connection | of connection and login |
| command: after a remote run | connection stays open until the plug-in ends | closed |
| metal: authToken missing | refused in a preview, too | refused at the first request: a preview needs none |
| metal: iPXE script, metro or facilities, reservation rules | told when the device is ordered | told in the preview |
| metal: inputs of a convertible type (`"true"` for true) | converted | refused |
| metal: UUIDs of projects, organizations, reservations | looked at | left to the API |
| metal: description of a new device | not sent | sent |
| metal: first look at a new device | after 10 s, then 3 s and longer | after 1 s, then up to 2 s, told as status |
| metal: a device that fails, or is late | forgotten: nobody's | kept in the state: replaced, or waited for |
| metal: time limit of a device | 60 min, whatever customTimeouts say | customTimeouts, else 20 min |
| metal: transport errors | repeated, orders too | repeated; orders only after looking for their outcome |
| metal: 429 and 5xx | not repeated | repeated with back-off, Retry-After honoured |
| metal: release | asked for | asked for until the API no longer knows the device |
| metal: waitForReservationDeprovision | done | refused by name |
| metal: new ipAddresses, shown | member by member | entry by entry |
| metal: rules of blocks and attachments | told when they are made | told in the preview |
| metal: tags of a block, in the state | in the order of Terraform's sets | in the API's |
| metal: a block that has to be approved | kept without addresses | kept as not complete, looked at again |

The last three rows, and what addresses and BGP sessions look like, are read from the official source, not measured.
"""
