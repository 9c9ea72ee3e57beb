package node

import (
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	// platformSpace is the namespace of the static pods by which platform baremetal keeps its addresses.
	platformSpace = "openshift-kni-infra"
	vipEvery      = 500 * time.Millisecond
	// vipFalls is how often in a row a check must fail, as in keepalived.conf of the machine config operator.
	vipFalls = 3
)

// errNoKeepalived is why a pod of the platform does not run.
var errNoKeepalived = errors.New("left out: the lab has no image of it")

// vip is an address that one of several machines has at a time.
type vip struct {
	address string
	ports   []string // the first one is there wherever the others may be
	healthy func(ctx context.Context) bool
}

// isPlatformPod is whether a pod is one of those that platform baremetal has on every machine: keepalived, haproxy, coredns.
func isPlatformPod(told podManifest) bool { return told.Metadata.Namespace == platformSpace }

// keepAddresses takes the place of a pod of platform baremetal on a machine that shares its kernel, and the addresses of
// all machines, with others. For keepalived: whoever has the pod and passes the check of its configuration takes the
// address when nobody has it, and serves on it what is served on the machine's own; who does not pass, or is gone, has it
// no more. There is no election: the kernel gives a port to one.
func (p *pods) keepAddresses(ctx context.Context, told podManifest) error {
	if told.Metadata.Name != "keepalived" || len(p.addresses) == 0 || p.addresses[0] == "" {
		return errNoKeepalived
	}
	address := p.addresses[0] // the first one is of IPv4, as the platform's are here
	arguments := []string{}
	for _, it := range slices.Concat(told.Spec.InitContainers, told.Spec.Containers) {
		arguments = append(append(arguments, it.Command...), it.Args...)
	}
	own := func(port string) string { return net.JoinHostPort(address, port) }
	api := func(context.Context) bool { return accepts(own(apiPort)) }
	ingress := func(ctx context.Context) bool { return isReady(ctx, "http://"+own(routerHealthPort)+routerHealthPath) }
	for _, each := range valuesOf(arguments, "--api-vips") {
		go vip{address: each, ports: []string{apiPort, machinePort}, healthy: api}.keep(ctx, address, p.log)
	}
	for _, each := range valuesOf(arguments, "--ingress-vips") {
		go vip{address: each, ports: []string{httpsPort, httpPort}, healthy: ingress}.keep(ctx, address, p.log)
	}
	<-ctx.Done()
	return ctx.Err()
}

// valuesOf is the values of a flag that takes several, with commas.
func valuesOf(arguments []string, flag string) []string {
	if at := slices.Index(arguments, flag); at >= 0 && at+1 < len(arguments) {
		return strings.Split(arguments[at+1], ",")
	}
	return nil
}

// keep has the address whenever it can be had and this machine is healthy, until the context ends.
func (v vip) keep(ctx context.Context, own string, logger *log.Logger) {
	var letGo context.CancelFunc
	failed := 0
	for ctx.Err() == nil {
		if v.healthy(ctx) {
			failed = 0
		} else {
			failed++
		}
		switch {
		case letGo == nil && failed == 0:
			if letGo = v.take(ctx, own); letGo != nil {
				logger.Printf("keepalived (lab stand-in): this machine has %s", v.address)
			}
		case letGo != nil && failed >= vipFalls:
			letGo()
			letGo = nil
			logger.Printf("keepalived (lab stand-in): this machine let go of %s", v.address)
		}
		sleep(ctx, vipEvery)
	}
	if letGo != nil {
		letGo()
	}
}

// take serves the ports of the address; nil if another machine has it.
func (v vip) take(ctx context.Context, own string) context.CancelFunc {
	ctx, cancel := context.WithCancel(ctx)
	for _, port := range v.ports {
		if err := relay(ctx, net.JoinHostPort(v.address, port), net.JoinHostPort(own, port)); err != nil {
			cancel()
			return nil
		}
	}
	return cancel
}

func accepts(address string) bool {
	connection, err := net.DialTimeout("tcp", address, time.Second)
	if err == nil {
		_ = connection.Close()
	}
	return err == nil
}

func isReady(ctx context.Context, url string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	direct := http.Transport{DisableKeepAlives: true}
	answer, err := direct.RoundTrip(request)
	if err != nil {
		return false
	}
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}
