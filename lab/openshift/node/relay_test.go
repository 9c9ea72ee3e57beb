package node

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// upstream is a listener whose connections are given to `serve`.
func upstream(t *testing.T, serve func(*net.TCPConn)) string {
	t.Helper()
	return accepting(t, must(net.Listen("tcp", "127.0.0.1:0")), func(connection net.Conn) { serve(connection.(*net.TCPConn)) })
}

// accepting gives the connections of a listener to `serve`, until the test ends; the result is its address.
func accepting(t *testing.T, listener net.Listener, serve func(net.Conn)) string {
	t.Helper()
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(connection)
		}
	}()
	return listener.Addr().String()
}

// relayed is an address from which connections are carried to another one.
func relayed(t *testing.T, ctx context.Context, to string) string {
	t.Helper()
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	from := listener.Addr().String()
	listener.Close()
	check(t, relay(ctx, from, to))
	return from
}

func dialTest(t *testing.T, address string) *net.TCPConn {
	t.Helper()
	connection := must(net.Dial("tcp", address))
	t.Cleanup(func() { connection.Close() })
	_ = connection.SetDeadline(time.Now().Add(10 * time.Second))
	return connection.(*net.TCPConn)
}

// The other side answers only once it has read everything: who asked has closed its own half by then.
func TestRelayCarriesBothDirectionsToTheirEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	address := relayed(t, ctx, upstream(t, func(connection *net.TCPConn) {
		defer connection.Close()
		data, _ := io.ReadAll(connection)
		_, _ = connection.Write(append([]byte("heard "), data...))
	}))
	for range 3 {
		connection := dialTest(t, address)
		must(connection.Write([]byte("hello")))
		check(t, connection.CloseWrite())
		if answer, err := io.ReadAll(connection); string(answer) != "heard hello" {
			t.Fatalf("%q %v", answer, err)
		}
	}
}

func TestRelayEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	gone := make(chan struct{})
	address := relayed(t, ctx, upstream(t, func(connection *net.TCPConn) {
		_, _ = connection.Write([]byte("x"))
		_, _ = io.Copy(io.Discard, connection)
		close(gone)
	}))
	connection := dialTest(t, address)
	must(io.ReadFull(connection, make([]byte, 1)))
	cancel()
	if _, err := connection.Read(make([]byte, 1)); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("the connection is still there: %v", err)
	}
	select {
	case <-gone:
	case <-time.After(10 * time.Second):
		t.Fatal("the other side still has its connection")
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if next, err := net.Dial("tcp", address); err != nil {
			return
		} else if next.Close(); time.Now().After(deadline) {
			t.Fatal("it still listens")
		}
	}
}

func TestRelayClosesWhatItCannotCarry(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	port := must(freePort())
	nowhere := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}
	connection := dialTest(t, relayed(t, ctx, nowhere.String()))
	if _, err := connection.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
}

func TestRelayRefusesAnAddressThatIsTaken(t *testing.T) {
	taken := upstream(t, func(connection *net.TCPConn) { connection.Close() })
	if err := relay(context.Background(), taken, "127.0.0.1:1"); err == nil {
		t.Fatal("it listens where another one does")
	}
}
