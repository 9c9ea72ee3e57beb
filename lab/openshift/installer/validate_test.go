package installer

import (
	"strings"
	"testing"
)

const valid = `
apiVersion: v1
baseDomain: example.test
metadata: {name: lab}
platform: {none: {}}
pullSecret: '{"auths":{"registry.test":{"auth":"YTpi"}}}'
sshKey: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA somebody
`

func check(t *testing.T, text string) string {
	t.Helper()
	config, err := parseConfig([]byte(text), &logger{})
	if err != nil {
		return err.Error()
	}
	if err := validate(config); err != nil {
		return err.Error()
	}
	return ""
}

func TestValidConfig(t *testing.T) {
	if got := check(t, valid); got != "" {
		t.Fatal(got)
	}
}

func TestEachProblemIsNamed(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"apiVersion: v1", "apiVersion: v2", `apiVersion: Invalid value: "v2": install-config version must be "v1"`},
		{"apiVersion: v1", "", "apiVersion: Required value: install-config version required"},
		{"baseDomain: example.test", "baseDomain: Example_", `baseDomain: Invalid value: "Example_": a lowercase RFC 1123`},
		{"name: lab", "name: La", `metadata.name: Invalid value: "La": a lowercase RFC 1123`},
		{"name: lab", "labels: {}", "metadata.name: Required value: cluster name required"},
		{"{none: {}}", "{aws: {}}", `platform: Invalid value: "aws": must specify one of the platforms (none)`},
		{"{none: {}}", "{}", `platform: Invalid value: "": must specify one of the platforms (none)`},
		{`{"auths":{"registry.test":{"auth":"YTpi"}}}`, `{"auths":{}}`, ": auths required"},
		{`{"auth":"YTpi"}`, `{}`, `"registry.test" requires either auth or credsStore`},
		{`{"auths":{"registry.test":{"auth":"YTpi"}}}`, "x", "invalid character 'x'"},
		{"ssh-ed25519 AAAAC3", "ssh-ed25519 BBBB", "ssh: no key found"},
		{"apiVersion: v1", "apiVersion: v1\ncontrolPlane: {name: master, replicas: 0}", "controlPlane.replicas: Invalid value: 0"},
		{"apiVersion: v1", "apiVersion: v1\ncompute: [{name: other}]", `compute[0].name: Unsupported value: "other"`},
		{"apiVersion: v1", "apiVersion: v1\nnetworking: {machineNetwork: [{cidr: 172.30.1.0/24}]}", "must not overlap with"},
		{"apiVersion: v1", "apiVersion: v1\nnetworking: {clusterNetwork: [{cidr: 10.128.0.0/14, hostPrefix: 8}]}", "hostPrefix: Invalid value: 8"},
		{"apiVersion: v1", "apiVersion: v1\nnetworking: {networkType: Other}", `networking.networkType: Unsupported value: "Other"`},
		{"apiVersion: v1", "apiVersion: v1\nadditionalTrustBundle: nonsense", "additionalTrustBundle: Invalid value"},
		{"apiVersion: v1", "apiVersion: [", "failed to unmarshal install-config.yaml"},
	} {
		if got := check(t, strings.Replace(valid, c.old, c.new, 1)); !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.new, got, c.want)
		}
	}
}

func TestSeveralProblemsAreOneList(t *testing.T) {
	got := check(t, strings.NewReplacer("name: lab", "name: La", "ssh-ed25519", "nonsense").Replace(valid))
	if !strings.HasPrefix(got, "[metadata.name: ") || !strings.HasSuffix(got, "ssh: no key found]") {
		t.Fatal(got)
	}
}
