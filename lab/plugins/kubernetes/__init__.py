"""The stand-in for `kubernetes`, v4.34.2: custom resources of any kind, and those of Kubernetes that the stacks use.

    inputs       what the resource types and the provider's configuration take
    objects      pure functions between inputs, state and what the API server knows
    client       the API server: kubeconfig, retries, refusals
    readiness    what an object is waited for
    resource     the life of an object: server-side apply, dry runs, deletion
    main         the executable

Compared with the source of the official plug-in (at 94977969d), not yet with the plug-in at work. Where they differ:

| What | Official | Stand-in |
|---|---|---|
| other types of Kubernetes' own, Helm, Kustomize, YAML, patches of these | done | refused by name |
| objects without a name | named | refused |
| kubeconfig | text, path, $KUBECONFIG, ~/.kube/config | text with certificates or a token, or refused when needed |
| settings but those of `inputs.CONFIGURATION` with a form | done | refused by name |
| annotations but waitFor, patchForce | done | refused by name |
| difference | inputs against the last known object | the live object against a dry run of server-side apply |
| drift | shows after a refresh | shows at once |
| a conflict, or a value that is refused | told by the update | told by preview and update |
| cluster not reachable in a preview | inputs are compared | the same, with a warning |
| a field that the schema does not know | warning | refused |
| field manager | random | derived from the resource's name |
| create, the object is there | refused | the same, unless a create of this resource was interrupted |
| delete, somebody made the object anew since | deletes it | leaves it, with a warning |
| delete: propagation | foreground | foreground of what controllers make pods of, else background |
| `stringData` | in the state, and as `data` | as `data` alone |
| 429 and 502 to 504 | not repeated | repeated with back-off, Retry-After honoured |
| secrets in the API server's messages | shown | `[secret]` |
"""
