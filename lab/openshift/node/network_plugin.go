package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"

	"metal-ipi.test/lab/openshift/kube"
)

const (
	// chassisAnnotation is where OVN-Kubernetes writes down which chassis a node is; its admission refuses another value
	// (openshift/ovn-kubernetes, nodeadmission.go). The lab's API has that rule as a policy: lab/kubernetes/cluster.py.
	chassisAnnotation = "k8s.ovn.org/node-chassis-id"
	bridge            = "br-ex"
)

// rejections is what OVN-Kubernetes rejects on every node, so that no pod reaches what the machine config server gives:
// new connections to it, from the node itself and through it (openshift/ovn-kubernetes, OCP_HACKS.go).
const rejections = `
table inet lab_ovn_kubernetes
delete table inet lab_ovn_kubernetes
table inet lab_ovn_kubernetes {
    chain output {
        type filter hook output priority filter; policy accept;
        tcp dport { 22623, 22624 } tcp flags & (fin|syn|rst|ack) == syn reject
    }
    chain forward {
        type filter hook forward priority filter; policy accept;
        tcp dport { 22623, 22624 } tcp flags & (fin|syn|rst|ack) == syn reject
    }
}
`

// networkProblem is why the network plug-in does not have this node; nothing once it has. It is asked at each report.
func (n *kubeletNode) networkProblem(ctx context.Context, client *kube.Client) string {
	n.mu.Lock()
	attached := n.attached
	n.mu.Unlock()
	if attached {
		return ""
	}
	if err := n.attach(ctx, client); err != nil {
		return "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:" + err.Error()
	}
	n.mu.Lock()
	n.attached = true
	n.mu.Unlock()
	return ""
}

// attach does of OVN-Kubernetes' work what others on the machine have to live with.
func (n *kubeletNode) attach(ctx context.Context, client *kube.Client) error {
	annotations := kube.Object{"metadata": kube.Object{"annotations": kube.Object{chassisAnnotation: n.chassis}}}
	err := client.Merge(ctx, kube.Nodes+"/"+n.host.name, annotations)
	if kube.Code(err) == http.StatusNotFound {
		return errors.New("the node is not registered yet")
	}
	if err != nil {
		return err
	}
	if n.host.network.Source != "" {
		return nil // it shares its kernel with others, and has no packet filter of its own
	}
	filter := exec.CommandContext(ctx, "nft", "-f", "-")
	filter.Stdin = strings.NewReader(rejections)
	if output, err := filter.CombinedOutput(); err != nil {
		return fmt.Errorf("nft: %w: %s", err, bytes.TrimSpace(output))
	}
	return nil
}

// Bridge takes the place of configure-ovs.sh: it moves the default interface's addresses and routes to a bridge called
// br-ex, whose port that interface becomes. The real one is Open vSwitch's; what others see of it is the same.
func Bridge() int {
	return supervised(bridge, func(ctx context.Context, host machine) error {
		if host.network.Source != "" {
			host.log.Printf("%s: left out: this machine shares its kernel with others", bridge)
			return nil
		}
		return makeBridge(ctx, host)
	})
}

type link struct {
	Name    string `json:"ifname"`
	Address string `json:"address"`
	Info    []struct {
		Family string `json:"family"`
		Local  string `json:"local"`
		Prefix int    `json:"prefixlen"`
	} `json:"addr_info"`
}

type route struct {
	Destination string `json:"dst"`
	Gateway     string `json:"gateway"`
	Device      string `json:"dev"`
	Source      string `json:"prefsrc"`
	Protocol    string `json:"protocol"`
}

func makeBridge(ctx context.Context, host machine) error {
	var defaults, routes []route
	if err := ipJSON(ctx, &defaults, "-4", "route", "show", "default"); err != nil {
		return err
	}
	if len(defaults) == 0 {
		return errors.New("there is no default route, so no interface to make a bridge of")
	}
	device := defaults[0].Device
	if device == bridge {
		return nil // it was done before
	}
	var links []link
	if err := ipJSON(ctx, &links, "address", "show", "dev", device); err != nil {
		return err
	}
	if err := ipJSON(ctx, &routes, "-4", "route", "show", "dev", device); err != nil {
		return err
	}
	commands := [][]string{
		{"link", "add", bridge, "address", links[0].Address, "type", "bridge"},
		{"link", "set", device, "master", bridge},
		{"link", "set", bridge, "up"},
	}
	for _, address := range links[0].Info {
		if address.Family == "inet" {
			own := fmt.Sprintf("%s/%d", address.Local, address.Prefix)
			commands = append(commands, []string{"address", "del", own, "dev", device}, []string{"address", "add", own, "dev", bridge})
		}
	}
	for _, each := range routes {
		if each.Protocol == "kernel" {
			continue // it came with its address
		}
		command := []string{"route", "replace", each.Destination, "dev", bridge}
		if each.Gateway != "" {
			command = append(command, "via", each.Gateway)
		}
		if each.Source != "" {
			command = append(command, "src", each.Source)
		}
		commands = append(commands, command)
	}
	for _, command := range commands {
		if output, err := exec.CommandContext(ctx, "ip", command...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", strings.Join(command, " "), err, bytes.TrimSpace(output))
		}
	}
	host.log.Printf("%s has the addresses of %s now", bridge, device)
	return nil
}

func ipJSON(ctx context.Context, into any, arguments ...string) error {
	command := exec.CommandContext(ctx, "ip", append([]string{"-json"}, arguments...)...)
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		return fmt.Errorf("ip %s: %w", strings.Join(arguments, " "), err)
	}
	if err := json.Unmarshal(output, into); err != nil {
		return fmt.Errorf("ip %s: %w", strings.Join(arguments, " "), err)
	}
	return nil
}
