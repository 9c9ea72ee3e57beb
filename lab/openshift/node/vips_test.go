package node

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestAnAddressGoesFromWhoIsNoLongerHealthyToWhoIs(t *testing.T) {
	service, err := net.Listen("tcp", "127.0.0.2:0")
	check(t, err)
	defer service.Close()
	go func() { _ = http.Serve(service, http.NotFoundHandler()) }()
	_, port, _ := net.SplitHostPort(service.Addr().String())
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	quietly := log.New(io.Discard, "", 0)
	healthy := make(chan bool, 1)
	well := true
	first := vip{address: "127.0.0.9", ports: []string{port}, healthy: func(context.Context) bool {
		select {
		case well = <-healthy:
		default:
		}
		return well
	}}
	go first.keep(ctx, "127.0.0.2", quietly)
	await(t, func() bool { return accepts(net.JoinHostPort("127.0.0.9", port)) })
	second := vip{address: "127.0.0.9", ports: []string{port}}
	if second.take(ctx, "127.0.0.2") != nil {
		t.Fatal("two machines have the address")
	}
	healthy <- false
	var letGo context.CancelFunc
	await(t, func() bool {
		letGo = second.take(ctx, "127.0.0.2")
		return letGo != nil
	})
	letGo()
}

func TestThePlatformsPodsNameTheirAddresses(t *testing.T) {
	arguments := []string{"runtimecfg", "render", "--api-vips", "192.0.2.8", "--ingress-vips", "192.0.2.9,fd00::9"}
	if got := strings.Join(valuesOf(arguments, "--ingress-vips"), " "); got != "192.0.2.9 fd00::9" {
		t.Error(got)
	}
	told, err := parsePod([]byte("kind: Pod\nmetadata: {name: coredns, namespace: openshift-kni-infra}\n" +
		"spec: {hostNetwork: true, containers: [{name: coredns}]}\n"))
	check(t, err)
	runner := pods{addresses: []string{"127.0.0.2"}}
	if err := runner.run(context.Background(), "coredns", told); err != errNoKeepalived {
		t.Error(err)
	}
}

func TestARouterAnswersWhateverItIsAskedFor(t *testing.T) {
	httpsPort, httpPort, routerHealthPort = "14443", "14080", "14936"
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { _ = serveUsers(ctx, "127.0.0.31", "*.apps.lab.test", log.New(io.Discard, "", 0)) }()
	await(t, func() bool { return isReady(ctx, "http://127.0.0.31:"+routerHealthPort+routerHealthPath) })
	connection, err := tls.Dial("tcp", "127.0.0.31:"+httpsPort, &tls.Config{InsecureSkipVerify: true, ServerName: "x.apps.lab.test"})
	check(t, err)
	defer connection.Close()
	check(t, connection.ConnectionState().PeerCertificates[0].VerifyHostname("x.apps.lab.test"))
	answer, err := http.Get("http://127.0.0.31:" + httpPort)
	check(t, err)
	if answer.StatusCode != http.StatusServiceUnavailable {
		t.Error(answer.Status)
	}
}

func await(t *testing.T, so func() bool) {
	t.Helper()
	for range 200 {
		if so() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("it does not come true")
}
