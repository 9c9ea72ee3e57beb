package installer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"metal-ipi.test/lab/openshift/cluster"
	"metal-ipi.test/lab/openshift/kube"
)

const (
	pollEvery    = 2 * time.Second
	requestLimit = 32 * time.Second
	steady       = 30 * time.Second // how long an operator must have stopped progressing
	stableWithin = 30 * time.Minute
)

// admin is the cluster as the kubeconfig of an assets directory reaches it.
type admin struct {
	client *kube.Client
	server string
	log    *logger
}

func newAdmin(directory string, log *logger) (*admin, error) {
	data, err := os.ReadFile(filepath.Join(directory, "auth", "kubeconfig"))
	if err != nil {
		return nil, fmt.Errorf("loading kubeconfig: %w", err)
	}
	var config struct {
		Clusters []struct {
			Cluster struct {
				Server string `yaml:"server"`
				CA     string `yaml:"certificate-authority-data"`
			} `yaml:"cluster"`
		} `yaml:"clusters"`
		Users []struct {
			User struct {
				Certificate string `yaml:"client-certificate-data"`
				Key         string `yaml:"client-key-data"`
			} `yaml:"user"`
		} `yaml:"users"`
	}
	if err := yaml.Unmarshal(data, &config); err != nil {
		return nil, fmt.Errorf("loading kubeconfig: %w", err)
	}
	if len(config.Clusters) != 1 || len(config.Users) != 1 {
		return nil, errors.New("loading kubeconfig: kubeconfig is missing expected data")
	}
	target, who := config.Clusters[0].Cluster, config.Users[0].User
	var decoded [3][]byte
	for i, text := range []string{target.CA, who.Certificate, who.Key} {
		if decoded[i], err = base64.StdEncoding.DecodeString(text); err != nil {
			return nil, fmt.Errorf("loading kubeconfig: %w", err)
		}
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(decoded[0]) {
		return nil, errors.New("loading kubeconfig: cluster CA found in kubeconfig not valid PEM format")
	}
	certificate, err := cluster.Pair{Cert: decoded[1], Key: decoded[2]}.TLS()
	if err != nil {
		return nil, fmt.Errorf("loading kubeconfig: %w", err)
	}
	network, err := kube.NetworkFromEnv()
	if err != nil {
		return nil, err
	}
	settings := &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	return &admin{client: kube.NewClient(target.Server, settings, network, requestLimit), server: target.Server, log: log}, nil
}

// waitBootstrap waits for the API, then for the bootstrap machine to say that the control plane stands by itself.
func waitBootstrap(ctx context.Context, directory string, log *logger) error {
	cluster, err := newAdmin(directory, log)
	if err != nil {
		return err
	}
	apiLimit, err := duration("LAB_OPENSHIFT_API_TIMEOUT", 20*time.Minute)
	if err != nil {
		return err
	}
	limit, err := duration("LAB_OPENSHIFT_BOOTSTRAP_TIMEOUT", 45*time.Minute)
	if err != nil {
		return err
	}
	started := time.Now()
	if err := cluster.bootstrapped(ctx, apiLimit, limit); err != nil {
		if ctx.Err() != nil {
			return err
		}
		cluster.tellOperators(ctx)
		log.info("Use the following commands to gather logs from the cluster")
		log.info("openshift-install gather bootstrap --help")
		log.error("Bootstrap failed to complete: %v", errors.Unwrap(err))
		log.error("%v", err)
		return &exitError{exitBootstrap}
	}
	log.info("It is now safe to remove the bootstrap resources")
	log.info("Time elapsed: %s", time.Since(started).Round(time.Second))
	return nil
}

func (a *admin) bootstrapped(ctx context.Context, apiLimit, limit time.Duration) error {
	a.log.info("Waiting up to %s for the Kubernetes API at %s...", announce(apiLimit), a.server)
	var version struct {
		GitVersion string `json:"gitVersion"`
	}
	err := a.poll(ctx, apiLimit, "the Kubernetes API", func(ctx context.Context) (bool, error) {
		err := a.client.Do(ctx, http.MethodGet, "/version", nil, &version)
		return err == nil, err
	})
	if err != nil {
		return &gateError{"Failed waiting for Kubernetes API. This error usually happens when there is a problem on the bootstrap " +
			"host that prevents creating a temporary control plane.", err}
	}
	a.log.info("API %s up", version.GitVersion)
	a.log.info("Waiting up to %s for bootstrapping to complete...", announce(limit))
	err = a.poll(ctx, limit, "bootstrapping to complete", func(ctx context.Context) (bool, error) {
		var status kube.ConfigMap
		err := a.client.Do(ctx, http.MethodGet, kube.ConfigMaps+"/bootstrap", nil, &status)
		if err == nil {
			a.log.debug("Bootstrap status: %s", status.Data["status"])
		}
		return status.Data["status"] == "complete", err
	})
	if err != nil {
		return &gateError{"Failed to wait for bootstrapping to complete. This error usually happens when there is a problem with control " +
			"plane hosts that prevents the control plane operators from creating the control plane.", err}
	}
	return nil
}

// waitInstall waits until the cluster version is available and every operator is at rest.
func waitInstall(ctx context.Context, directory string, log *logger) error {
	cluster, err := newAdmin(directory, log)
	if err != nil {
		return err
	}
	limit, err := duration("LAB_OPENSHIFT_INSTALL_TIMEOUT", 40*time.Minute)
	if err != nil {
		return err
	}
	log.info("Waiting up to %s for the cluster at %s to initialize...", announce(limit), cluster.server)
	last := ""
	err = cluster.poll(ctx, limit, "the cluster to initialize", func(ctx context.Context) (bool, error) {
		var version kube.ClusterVersion
		if err := cluster.client.Do(ctx, http.MethodGet, kube.ClusterVersions+"/version", nil, &version); err != nil {
			return false, err
		}
		conditions := version.Status.Conditions
		for _, kind := range []string{"Failing", "Progressing"} {
			if kube.Is(conditions, kind, "True") {
				last = kube.Find(conditions, kind).Message
				break
			}
		}
		return kube.Is(conditions, "Available", "True") && kube.Is(conditions, "Failing", "False") &&
			kube.Is(conditions, "Progressing", "False"), nil
	})
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		cluster.tellOperators(ctx)
		log.error("Cluster initialization failed because one or more operators are not functioning properly.\n" +
			"The 'wait-for install-complete' subcommand can then be used to continue the installation")
		if last != "" {
			err = errors.New(last)
		}
		log.error("failed to initialize the cluster: %v", err)
		return &exitError{exitInstall}
	}
	if err := cluster.stable(ctx); err != nil {
		return err
	}
	return cluster.complete(ctx, directory)
}

// stable waits for the operators. The lab's API has none yet, and that is stable.
func (a *admin) stable(ctx context.Context) error {
	a.log.info("Waiting up to %s to ensure each cluster operator has finished progressing...", announce(stableWithin))
	unstable := []string{}
	err := a.poll(ctx, stableWithin, "stable operators", func(ctx context.Context) (bool, error) {
		operators, err := a.operators(ctx)
		if err != nil {
			return false, err
		}
		unstable = unstable[:0]
		for _, operator := range operators {
			progressing := kube.Find(operator.Status.Conditions, "Progressing")
			if progressing == nil || progressing.Status != "False" || !older(progressing.LastTransitionTime, steady) {
				unstable = append(unstable, operator.Metadata.Name)
			}
		}
		return len(unstable) == 0, nil
	})
	if err == nil {
		a.log.info("All cluster operators have completed progressing")
		return nil
	}
	if ctx.Err() != nil {
		return err
	}
	a.log.error("Error checking cluster operator Progressing status: %q", err.Error())
	a.log.error("These cluster operators were not stable: [%s]", strings.Join(unstable, ", "))
	return &exitError{exitStability}
}

func (a *admin) complete(ctx context.Context, directory string) error {
	a.log.info("Checking to see if there is a route at openshift-console/console...")
	var route struct {
		Spec struct {
			Host string `json:"host"`
		} `json:"spec"`
	}
	err := a.client.Do(ctx, http.MethodGet, "/apis/route.openshift.io/v1/namespaces/openshift-console/routes/console", nil, &route)
	if err != nil {
		a.log.warn("Cluster does not have a console available: %v", err)
	}
	absolute, err := filepath.Abs(directory)
	if err != nil {
		return err
	}
	a.log.info("Install complete!")
	a.log.info("To access the cluster as the system:admin user when using 'oc', run\n    export KUBECONFIG=%s",
		filepath.Join(absolute, "auth", "kubeconfig"))
	if route.Spec.Host != "" {
		a.log.info("Access the OpenShift web-console here: https://%s", route.Spec.Host)
	}
	return nil
}

// tellOperators logs what is wrong with the operators, as the real installer does after a failure.
func (a *admin) tellOperators(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	operators, err := a.operators(ctx)
	if err != nil {
		a.log.error("Attempted to gather ClusterOperator status after wait failure: listing ClusterOperator objects: %v", err)
		return
	}
	for _, operator := range operators {
		for _, c := range operator.Status.Conditions {
			a.log.info("Cluster operator %s %s is %s with %s: %s", operator.Metadata.Name, c.Type, c.Status, c.Reason, c.Message)
		}
	}
}

func (a *admin) operators(ctx context.Context) ([]kube.ClusterVersion, error) {
	var list struct {
		Items []kube.ClusterVersion `json:"items"`
	}
	err := a.client.Do(ctx, http.MethodGet, kube.ClusterOperators, nil, &list)
	return list.Items, err
}

// poll asks until the answer is yes or the time is over; it logs when the reason of waiting changes.
func (a *admin) poll(ctx context.Context, limit time.Duration, what string, ask func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var last error
	told := ""
	for {
		done, err := ask(ctx)
		if done {
			return nil
		}
		if err != nil && ctx.Err() == nil {
			last = err
			if err.Error() != told {
				told = err.Error()
				a.log.debug("Still waiting for %s: %v", what, err)
			}
		}
		select {
		case <-ctx.Done():
			if last != nil && kube.Code(last) == 0 {
				return last
			}
			return errors.New("timed out waiting for the condition")
		case <-time.After(pollEvery):
		}
	}
}

// gateError is a wait that failed: what that usually means, and the cause.
type gateError struct {
	text  string
	cause error
}

func (e *gateError) Error() string { return e.text }
func (e *gateError) Unwrap() error { return e.cause }

func older(timestamp string, age time.Duration) bool {
	at, err := time.Parse(time.RFC3339, timestamp)
	return err == nil && time.Since(at) > age
}

// announce is a time limit with the moment when it ends.
func announce(limit time.Duration) string {
	until := time.Now().Add(limit)
	zone, _ := until.Zone()
	return fmt.Sprintf("%s (until %s %s)", limit, until.Format(time.Kitchen), zone)
}
