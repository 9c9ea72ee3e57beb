package node

import (
	"context"
	"crypto/tls"
	"testing"
	"time"

	"metal-ipi.test/lab/openshift/cluster"
	"metal-ipi.test/lab/openshift/kube"
)

// The lab's service may take minutes to start an API server: a machine that goes down does not wait for it.
func TestAMachineThatGoesDownDoesNotWaitForItsAPIServer(t *testing.T) {
	signer := authority(t, "signer")
	pair := must(signer.Issue(cluster.Leaf{Names: []string{"service.test"}, Validity: time.Hour}, time.Now()))
	certificate := must(pair.TLS())
	listener := must(tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate}}))
	defer listener.Close()
	asked := make(chan struct{})
	go func() {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		_, _ = connection.Read(make([]byte, 100))
		close(asked)
	}()
	host, _ := testMachine(t)
	it := &native{
		place:   cluster.Native{Server: listener.Addr().String(), Name: "service.test", Authority: string(signer.Cert)},
		network: kube.Network{}, log: host.log, hello: func() (any, error) { return "hello", nil },
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- it.Run(ctx) }()
	<-asked
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it waits")
	}
}
