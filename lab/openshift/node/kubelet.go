package node

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"metal-ipi.test/lab/openshift/cluster"
	"metal-ipi.test/lab/openshift/kube"
)

const (
	kubeletUnit = "/etc/systemd/system/kubelet.service"
	assignEvery = 500 * time.Millisecond // how often a node asks for its pods; a kubelet watches
	serverFile  = "/var/lib/kubelet/pki/kubelet-server-current.pem"
	// bothNodeIPs is what --node-ip is with dual stack (machine-config-operator, 01-master-kubelet, 01-worker-kubelet):
	// nodeip-configuration.service, which is not here, sets the variable to the addresses of the default routes' interface.
	bothNodeIPs = "${KUBELET_NODE_IPS}"
)

// Kubelet takes the place of /usr/bin/kubelet below the unit that the machine's real configuration has for it, and goes
// by the flags there: on a bootstrap machine it runs static pods, on a node it also makes it a member of the cluster.
func Kubelet() int {
	return supervised("kubelet", func(ctx context.Context, host machine) error {
		flags, err := unitFlags(filepath.Join(host.root, kubeletUnit))
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Join(host.root, manifestDirectory), 0o755); err != nil {
			return err
		}
		runner := &pods{root: host.root, addresses: host.network.Sources(), wire: wireFromEnv(), log: host.log}
		bootstrap := flags["bootstrap-kubeconfig"]
		if bootstrap == "" {
			notify()
			runner.Run(ctx)
			return nil
		}
		if _, err := os.Stat(filepath.Join(host.root, encapsulated)); err == nil {
			return errors.New("the release's node image, which brings the kubelet, is not on this machine: its first boot is not over")
		}
		node, err := newKubeletNode(host, flags, filepath.Join(host.root, bootstrap))
		if err != nil {
			return err
		}
		runner.assigned = node.assignedPods
		if _, err := os.Stat(filepath.Join(host.root, cluster.LocalKubeconfig)); err == nil {
			// As a static pod, which is on the disk: after a power cut of all machines there is no API to ask first.
			node.keepAPI(ctx)
		}
		notify()
		var group sync.WaitGroup
		group.Add(1)
		go func() { defer group.Done(); runner.Run(ctx) }()
		node.agent.Run(ctx)
		group.Wait()
		return nil
	})
}

// unitFlags is the flags of the program that a unit starts, without their dashes; those of /usr/bin/kubelet for one that
// a script starts are none.
func unitFlags(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	flags := map[string]string{}
	joined := strings.ReplaceAll(string(text), "\\\n", " ")
	for line := range strings.Lines(joined) {
		command, found := strings.CutPrefix(line, "ExecStart=")
		if !found {
			continue
		}
		for _, word := range strings.Fields(command) {
			if name, value, ok := strings.Cut(strings.TrimPrefix(word, "--"), "="); ok && strings.HasPrefix(word, "--") {
				flags[name] = value
			}
		}
	}
	return flags, nil
}

// notify tells systemd, where it wants to know, that the service is ready.
func notify() {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return
	}
	if connection, err := net.Dial("unixgram", strings.Replace(socket, "@", "\x00", 1)); err == nil {
		_, _ = connection.Write([]byte("READY=1")) // systemd waits, and then says so
		_ = connection.Close()
	}
}

// kubeletNode is a node of a cluster of the real installer.
type kubeletNode struct {
	assigned
	chassis string // what the network plug-in calls this machine
	master  bool

	serving  bool      // whether its first steps as a member were done
	kept     sync.Once // the API server of this machine
	attached bool      // whether the network plug-in has this machine
}

func newKubeletNode(host machine, flags map[string]string, bootstrap string) (*kubeletNode, error) {
	way, authority, _, err := readKubeconfig(bootstrap)
	if err != nil {
		return nil, err
	}
	chassis, err := chassisID(host.root)
	if err != nil {
		return nil, err
	}
	labels := flags["node-labels"]
	node := &kubeletNode{
		assigned: assigned{host: host, authority: authority, every: assignEvery}, chassis: chassis, master: strings.Contains(labels, master),
	}
	annotations := map[string]string{nodeLabels: labels}
	data, err := os.ReadFile(filepath.Join(host.root, "/etc/machine-config-daemon/node-annotations.json"))
	if err == nil {
		err = json.Unmarshal(data, &annotations)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("node-annotations.json: %w", err)
	}
	taints, err := parseTaints(flags["register-with-taints"])
	if err != nil {
		return nil, err
	}
	node.agent = &agent{
		name: host.name, access: way, network: host.network, root: host.root, now: time.Now, log: host.log, taints: taints,
		annotations: annotations, unready: node.networkProblem, joined: node.joined, bothFamilies: flags["node-ip"] == bothNodeIPs,
	}
	return node, nil
}

func parseTaints(text string) ([]kube.Taint, error) {
	taints := []kube.Taint{}
	for _, item := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
		key, effect, found := strings.Cut(item, ":")
		if !found {
			return nil, fmt.Errorf("--register-with-taints: %q has no effect", item)
		}
		key, value, _ := strings.Cut(key, "=")
		taints = append(taints, kube.Taint{Key: key, Value: value, Effect: effect})
	}
	return taints, nil
}

// joined begins what needs the node to be a member.
func (n *kubeletNode) joined(ctx context.Context, client *kube.Client) {
	n.assigned.joined(ctx, client)
	if n.serving {
		return
	}
	n.serving = true
	go n.serve(ctx)
	if n.master {
		n.keepAPI(ctx)
	}
}

// serve asks for the certificate that the kubelet's own port shows, as the real one does right after it joined.
func (n *kubeletNode) serve(ctx context.Context) {
	path := filepath.Join(n.host.root, serverFile)
	if _, err := os.Stat(path); err == nil {
		return
	}
	_ = until(ctx, retryEvery, n.host.log, "no certificate for the kubelet's port yet, trying again", func() (bool, error) { // it ends with the context
		n.mu.Lock()
		client := n.client // the node's certificate changes meanwhile
		n.mu.Unlock()
		addresses, err := n.agent.addresses()
		if err != nil {
			return false, err
		}
		wanted := x509.CertificateRequest{DNSNames: []string{n.host.name}}
		for _, address := range addresses {
			wanted.IPAddresses = append(wanted.IPAddresses, net.ParseIP(address))
		}
		pair, err := n.agent.ask(ctx, client, kube.ServingSigner, wanted)
		if err != nil {
			return false, err
		}
		err = replaceFile(path, append(pair.Cert, pair.Key...), 0o600)
		return err == nil, err
	})
}

// keepAPI keeps a kube-apiserver on a machine of the control plane, from its first call on: the lab's service runs one for
// whoever proves to be a node of the control plane, as OpenShift's operator does.
func (n *kubeletNode) keepAPI(ctx context.Context) {
	n.kept.Do(func() { go n.serveAPI(ctx) })
}

func (n *kubeletNode) serveAPI(ctx context.Context) {
	place, err := readFacility(n.host.root)
	if err != nil {
		n.host.log.Print(err)
		return
	}
	server := &native{
		place: place, network: n.host.network, log: n.host.log,
		hello: func() (any, error) {
			certificate, err := n.agent.stored()
			if err != nil {
				return nil, err
			}
			return map[string]any{"node": n.host.name, "certificate": certificate.Certificate[0]}, nil
		},
		keep: func(kubeconfig string) error {
			path := filepath.Join(n.host.root, cluster.LocalKubeconfig)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				return err
			}
			return os.WriteFile(path, []byte(kubeconfig), 0o600)
		},
		prove: func(nonce []byte) (any, error) {
			certificate, err := n.agent.stored()
			if err != nil {
				return nil, err
			}
			digest := sha256.Sum256(nonce)
			key, ok := certificate.PrivateKey.(*ecdsa.PrivateKey)
			if !ok {
				return nil, errors.New("the node's key is of an unknown kind")
			}
			proof, err := key.Sign(rand.Reader, digest[:], crypto.SHA256)
			return map[string][]byte{"proof": proof}, err
		},
	}
	server.runOncePortIsFree(ctx) // a single node's bootstrap has it for a while
}

// chassisID is what Open vSwitch calls this machine: made at its first start, and kept on its disk.
func chassisID(root string) (string, error) {
	path := filepath.Join(root, "/etc/openvswitch/system-id.conf")
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if known := strings.TrimSpace(string(data)); known != "" {
		return known, nil
	}
	fresh := cluster.UUID()
	return fresh, replaceFile(path, []byte(fresh+"\n"), 0o644)
}
