package node

import (
	"context"
	"io"
	"net"
	"time"
)

// relay carries connections from one address to another until the context ends.
func relay(ctx context.Context, from, to string) error {
	listener, err := net.Listen("tcp", from)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	go relayFrom(ctx, listener, func(ctx context.Context) (net.Conn, error) {
		dialer := net.Dialer{Timeout: dialLimit}
		return dialer.DialContext(ctx, "tcp", to)
	}, nil)
	return nil
}

// relayFrom carries connections from a listener to wherever `dial` connects, until the context ends.
func relayFrom(ctx context.Context, listener net.Listener, dial func(context.Context) (net.Conn, error), report func(error)) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			if ctx.Err() == nil && report != nil {
				report(err)
			}
			if ctx.Err() != nil {
				return
			}
			time.Sleep(retryEvery)
			continue
		}
		go relayOne(ctx, connection.(*net.TCPConn), dial)
	}
}

func relayOne(ctx context.Context, near *net.TCPConn, dial func(context.Context) (net.Conn, error)) {
	defer near.Close()
	other, err := dial(ctx)
	if err != nil {
		return // whoever called sees the connection closed
	}
	far := other.(*net.TCPConn)
	defer far.Close()
	stop := context.AfterFunc(ctx, func() {
		near.Close()
		far.Close()
	})
	defer stop()
	go func() {
		_, _ = io.Copy(far, near) // either side may break off
		_ = far.CloseWrite()
	}()
	_, _ = io.Copy(near, far)
}

// freePort is a port of loopback that nobody listens on at the moment.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}
