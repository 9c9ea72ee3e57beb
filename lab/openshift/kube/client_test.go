package kube

import (
	"context"
	"net"
	"syscall"
	"testing"
)

func TestDialTriesEveryAddressOfAName(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	// Nothing listens on the others, so every attempt but one is refused.
	network := Network{Static: map[string][]string{"api.test": {"127.0.0.2", "127.0.0.1", "127.0.0.3"}}}
	for range 10 {
		connection, err := network.Dial(context.Background(), "tcp", net.JoinHostPort("api.test", port))
		if err != nil {
			t.Fatal(err)
		}
		connection.Close()
	}
	network.Static["api.test"] = nil
	if _, err := network.Dial(context.Background(), "tcp", net.JoinHostPort("api.test", port)); err == nil {
		t.Fatal("connected to a name without addresses")
	}
}

func TestDialFromTheAddressOfTheSameFamily(t *testing.T) {
	listener, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skip("there is no IPv6 here")
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	network := Network{Source: "127.0.0.9", SourceIPv6: "::1", Static: map[string][]string{"api.test": {"::1"}}}
	connection, err := network.Dial(context.Background(), "tcp", net.JoinHostPort("api.test", port))
	if err != nil {
		t.Fatal(err)
	}
	connection.Close()
	if sources := network.Sources(); len(sources) != 2 || sources[1] != "::1" {
		t.Fatal(sources)
	}
	network.SourceIPv6 = ""
	if _, err := network.Dial(context.Background(), "tcp", net.JoinHostPort("api.test", port)); err == nil {
		t.Fatal("a machine without an IPv6 address was connected over IPv6")
	}
}

func TestNetworkFromEnv(t *testing.T) {
	t.Setenv("LAB_ADDRESS", "127.0.0.9")
	network, err := NetworkFromEnv()
	if err != nil || network.Source != "127.0.0.9" {
		t.Fatalf("%v %+v", err, network)
	}
	for name, value := range map[string]string{"LAB_ADDRESS": "here", "LAB_ADDRESS_IPV6": "there"} {
		t.Setenv("LAB_ADDRESS", "")
		t.Setenv("LAB_ADDRESS_IPV6", "")
		t.Setenv(name, value)
		if _, err := NetworkFromEnv(); err == nil {
			t.Errorf("%s=%s is accepted", name, value)
		}
	}
}

func TestAConnectionWhoseServerIsSilentEnds(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	connection, err := Network{}.Dial(context.Background(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	raw, err := connection.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	seconds := 0
	err = raw.Control(func(descriptor uintptr) {
		option := func(level, name int) int {
			value, err := syscall.GetsockoptInt(int(descriptor), level, name)
			if err != nil {
				t.Error(err)
			}
			return value
		}
		if option(syscall.SOL_SOCKET, syscall.SO_KEEPALIVE) != 1 {
			t.Error("nobody asks whether the server is there")
		}
		probes := option(syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL) * option(syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT)
		seconds = option(syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE) + probes
	})
	if err != nil || seconds > 25 {
		t.Errorf("%v, after %d s", err, seconds)
	}
}
