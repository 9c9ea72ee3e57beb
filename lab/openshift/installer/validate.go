package installer

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"sort"
	"strings"
)

const subdomainRule = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', " +
	"and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is " +
	`'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`

var (
	subdomain = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	label     = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	keyTypes  = []string{
		"ssh-ed25519", "ssh-rsa", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521",
		"sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com",
	}
	networkTypes = []string{"OVNKubernetes", "Calico", "Cilium", "KubeOVN", "Kuryr", "OpenShiftSDN"}
)

// problems collects what is wrong, in the words of Kubernetes' field errors.
type problems []string

func (p *problems) invalid(path string, value any, detail string) {
	if text, ok := value.(string); ok {
		value = fmt.Sprintf("%q", text)
	}
	*p = append(*p, fmt.Sprintf("%s: Invalid value: %v: %s", path, value, detail))
}

func (p *problems) required(path, detail string) {
	*p = append(*p, fmt.Sprintf("%s: Required value: %s", path, detail))
}

func (p *problems) unsupported(path, value string, supported ...string) {
	quoted := make([]string, len(supported))
	for i, name := range supported {
		quoted[i] = fmt.Sprintf("%q", name)
	}
	*p = append(*p, fmt.Sprintf("%s: Unsupported value: %q: supported values: %s", path, value, strings.Join(quoted, ", ")))
}

// err is all problems as one error, nil if there are none.
func (p problems) err() error {
	switch len(p) {
	case 0:
		return nil
	case 1:
		return errors.New(p[0])
	}
	return fmt.Errorf("[%s]", strings.Join(p, ", "))
}

// validate checks a config whose defaults are set.
func validate(config InstallConfig) error {
	var found problems
	switch config.APIVersion {
	case "v1":
	case "":
		found.required("apiVersion", "install-config version required")
		return found.err()
	default:
		found.invalid("apiVersion", config.APIVersion, `install-config version must be "v1"`)
		return found.err()
	}
	validateNames(&found, config)
	validateNetworking(&found, *config.Networking)
	validatePools(&found, config)
	validatePlatform(&found, config.Platform)
	if err := validatePullSecret(config.PullSecret); err != nil {
		found.invalid("pullSecret", config.PullSecret, err.Error())
	}
	if config.SSHKey != "" {
		for _, line := range strings.Split(strings.TrimSpace(config.SSHKey), "\n") {
			if err := validateSSHKey(line); err != nil {
				found.invalid("sshKey", config.SSHKey, err.Error())
			}
		}
	}
	if config.AdditionalTrustBundle != "" {
		if err := validateBundle(config.AdditionalTrustBundle); err != nil {
			found.invalid("additionalTrustBundle", config.AdditionalTrustBundle, err.Error())
		}
	}
	return found.err()
}

func validateNames(found *problems, config InstallConfig) {
	name := config.Metadata.Name
	if name == "" {
		found.required("metadata.name", "cluster name required")
	} else if !subdomain.MatchString(name) || len(name) > 253 {
		found.invalid("metadata.name", name, subdomainRule)
	} else if !label.MatchString(name) {
		found.invalid("metadata.name", name, "cluster name must not contain '.'")
	}
	domain := strings.TrimSuffix(config.BaseDomain, ".")
	if !subdomain.MatchString(domain) || len(domain) > 253 {
		found.invalid("baseDomain", config.BaseDomain, subdomainRule)
	}
}

func validateNetworking(found *problems, networking Networking) {
	if !slices.Contains(networkTypes, networking.NetworkType) {
		found.unsupported("networking.networkType", networking.NetworkType, networkTypes...)
	}
	type block struct {
		path, text string
		network    *net.IPNet
	}
	blocks := []block{}
	add := func(path, text string) *net.IPNet {
		ip, network, err := net.ParseCIDR(text)
		if err != nil {
			found.invalid(path, text, err.Error())
			return nil
		}
		if !ip.Equal(network.IP) {
			found.invalid(path, text, fmt.Sprintf("invalid network address. got %s, expecting %s", text, network))
		}
		for _, other := range blocks {
			if other.network.Contains(network.IP) || network.Contains(other.network.IP) {
				found.invalid(path, text, fmt.Sprintf("must not overlap with %s %s", other.path, other.text))
			}
		}
		blocks = append(blocks, block{path, text, network})
		return network
	}
	for i, item := range networking.MachineNetwork {
		add(fmt.Sprintf("networking.machineNetwork[%d]", i), item.CIDR)
	}
	for i, item := range networking.ServiceNetwork {
		add(fmt.Sprintf("networking.serviceNetwork[%d]", i), item)
	}
	for i, item := range networking.ClusterNetwork {
		path := fmt.Sprintf("networking.clusterNetwork[%d]", i)
		network := add(path+".cidr", item.CIDR)
		if network == nil {
			continue
		}
		if ones, _ := network.Mask.Size(); item.HostPrefix < ones {
			found.invalid(path+".hostPrefix", item.HostPrefix,
				"cluster network host subnetwork prefix must not be larger size than CIDR "+item.CIDR)
		}
	}
}

func validatePools(found *problems, config InstallConfig) {
	if config.ControlPlane.Name != "master" {
		found.unsupported("controlPlane.name", config.ControlPlane.Name, "master")
	}
	if *config.ControlPlane.Replicas <= 0 {
		found.invalid("controlPlane.replicas", *config.ControlPlane.Replicas, "number of control plane replicas must be positive")
	}
	names := map[string]bool{}
	for i, pool := range config.Compute {
		path := fmt.Sprintf("compute[%d]", i)
		if pool.Name != "worker" {
			found.unsupported(path+".name", pool.Name, "worker", "edge")
		}
		if names[pool.Name] {
			*found = append(*found, fmt.Sprintf("%s.name: Duplicate value: %q", path, pool.Name))
		}
		names[pool.Name] = true
		if *pool.Replicas < 0 {
			found.invalid(path+".replicas", *pool.Replicas, "number of replicas must not be negative")
		}
		if pool.Architecture != config.ControlPlane.Architecture {
			found.invalid(path+".architecture", pool.Architecture,
				"heteregeneous multi-arch is not supported; compute pool architecture must match control plane")
		}
	}
}

func validatePlatform(found *problems, platform map[string]any) {
	names := make([]string, 0, len(platform))
	for name := range platform {
		names = append(names, name)
	}
	sort.Strings(names)
	switch {
	case len(names) == 0:
		found.invalid("platform", "", "must specify one of the platforms (none)")
	case len(names) > 1:
		found.invalid("platform", names[0], fmt.Sprintf("must only specify a single type of platform; cannot use both %q and %q", names[0], names[1]))
	case names[0] != "none":
		found.invalid("platform", names[0], "must specify one of the platforms (none): the lab's stand-in knows no other")
	}
}

func validatePullSecret(secret string) error {
	var parsed struct {
		Auths map[string]map[string]any `json:"auths"`
	}
	if err := json.Unmarshal([]byte(secret), &parsed); err != nil {
		return err
	}
	if len(parsed.Auths) == 0 {
		return errors.New("auths required")
	}
	var missing []string
	for host, entry := range parsed.Auths {
		if entry["auth"] == nil && entry["credsStore"] == nil {
			missing = append(missing, fmt.Sprintf("%q requires either auth or credsStore", host))
		}
	}
	sort.Strings(missing)
	return problems(missing).err()
}

func validateSSHKey(line string) error {
	fields := strings.Fields(line)
	for i := 0; i+1 < len(fields); i++ { // options may come first
		if !slices.Contains(keyTypes, fields[i]) {
			continue
		}
		data, err := base64.StdEncoding.DecodeString(fields[i+1])
		if err != nil || len(data) < 4 {
			break
		}
		if size := int(binary.BigEndian.Uint32(data)); size+4 <= len(data) && string(data[4:4+size]) == fields[i] {
			return nil
		}
		break
	}
	return errors.New("ssh: no key found")
}

func validateBundle(bundle string) error {
	rest := []byte(bundle)
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return err
		}
	}
	if len(strings.TrimSpace(string(rest))) > 0 {
		return errors.New("invalid block")
	}
	return nil
}
