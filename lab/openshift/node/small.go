package node

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"os"
	"time"
)

// Small is the API server that the lab's service runs for a machine where there is no kube-apiserver to be had. It serves
// until it is told to stop; the result is the exit code.
func Small(arguments []string) int {
	flags := flag.NewFlagSet("small-apiserver", flag.ContinueOnError)
	address := flags.String("listen", "", "address:port")
	directory := flags.String("store", "", "directory of the cluster's objects, which all its servers share")
	clients := flags.String("clients", "", "authorities that sign clients' certificates, PEM")
	certificate := flags.String("certificate", "", "the server's certificate, PEM")
	key := flags.String("key", "", "its key, PEM")
	if flags.Parse(arguments) != nil {
		return 2
	}
	return supervised("small-apiserver", func(ctx context.Context, host machine) error {
		data, err := os.ReadFile(*clients)
		if err != nil {
			return err
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(data) {
			return fmt.Errorf("%s holds no certificate", *clients)
		}
		pair, err := tls.LoadX509KeyPair(*certificate, *key)
		if err != nil {
			return err
		}
		served := &server{store: store{*directory}, clients: roots, now: time.Now, log: host.log}
		config := &tls.Config{
			ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair},
		}
		return serve(ctx, *address, served.Handler(), config, host.log)
	})
}
