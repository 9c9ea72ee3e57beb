package node

import (
	"encoding/json"
	"log"
	"net/http"

	"metal-ipi.test/lab/openshift/cluster"
)

// machineConfigServer serves the pools' Ignition configs, rendered once: it must answer quickly on a slow machine.
func machineConfigServer(bundle cluster.Bundle, logger *log.Logger) (http.Handler, error) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	for _, pool := range []string{"master", "worker"} {
		config, err := bundle.PoolConfig(pool)
		if err != nil {
			return nil, err
		}
		data, err := json.Marshal(config)
		if err != nil {
			return nil, err
		}
		mux.HandleFunc("GET /config/"+pool, func(w http.ResponseWriter, request *http.Request) {
			logger.Printf("pool %s requested by %s, %q", pool, request.RemoteAddr, request.UserAgent())
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(data) // the client may be gone
		})
	}
	return mux, nil
}
