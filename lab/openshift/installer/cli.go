// Package installer is the lab's stand-in for openshift-install: same commands, files and exit codes, as far as an
// installation on platform none uses them.
package installer

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

const (
	// Version is what the stand-in calls itself, and the release it installs.
	Version = "4.21.0-lab"
	commit  = "none: this is the lab's stand-in for openshift-install"
)

// Exit codes of the real installer.
const (
	exitFailure = iota + 1
	_
	exitConfig
	exitInfrastructure // not used here: on platform none the installer makes no infrastructure
	exitBootstrap
	exitInstall
	exitStability
	exitInterrupt
)

const help = `Creates OpenShift clusters (the lab's stand-in: platform none only)

Usage:
  openshift-install [command]

Available Commands:
  coreos print-stream-json          Outputs the CoreOS stream metadata of the lab
  create manifests                  Generates the Kubernetes manifests
  create ignition-configs           Generates the Ignition Config asset
  create single-node-ignition-config
                                    Generates the bootstrap-in-place-for-live-iso Ignition Config asset
  gather bootstrap                  Gather debugging data for a failing-to-bootstrap control plane
  version                           Print version information
  wait-for bootstrap-complete       Wait until cluster bootstrapping has completed
  wait-for install-complete         Wait until the cluster is ready

Flags:
      --dir string         assets directory (default ".")
      --log-level string   log level (e.g. "debug | info | warn | error") (default "info")
      --bootstrap string   gather bootstrap: hostname or IP of the bootstrap host
      --master strings     gather bootstrap: hostnames or IPs of all control plane hosts
      --key strings        gather bootstrap: path to SSH private keys
`

// options is what the command line says.
type options struct {
	command   []string
	directory string
	level     string
	bootstrap string
	masters   []string
	keys      []string
	help      bool
}

// exitError ends with a code, all being said.
type exitError struct{ code int }

func (e *exitError) Error() string { return fmt.Sprintf("exit status %d", e.code) }

// Main runs the installer and returns its exit code.
func Main(program string, arguments []string) int {
	options, parseError := parse(arguments)
	log, err := newLogger(options.level)
	if err != nil {
		log, _ = newLogger("info")
		log.fatal("%v", err)
		return exitFailure
	}
	if parseError != nil {
		log.fatal("Error executing openshift-install: %v", parseError)
		return exitFailure
	}
	command := strings.Join(options.command, " ")
	if options.help || command == "" {
		fmt.Print(help)
		return 0
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer log.close()
	err = execute(ctx, program, command, options, log)
	if ctx.Err() != nil {
		log.warn("Received interrupt signal")
		return exitInterrupt
	}
	var config *configError
	var exit *exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.code
	case errors.As(err, &config):
		log.error("%v", err)
		return exitConfig
	}
	log.fatal("%v", err)
	return exitFailure
}

func execute(ctx context.Context, program, command string, options options, log *logger) error {
	run, known := map[string]func() error{
		"version":                            func() error { return printVersion(program) },
		"coreos print-stream-json":           func() error { return printStream(ctx) },
		"create manifests":                   func() error { return createManifests(options.directory, log) },
		"create ignition-configs":            func() error { return createIgnition(options.directory, log) },
		"create single-node-ignition-config": func() error { return createSingleNode(options.directory, log) },
		"wait-for bootstrap-complete":        func() error { return waitBootstrap(ctx, options.directory, log) },
		"wait-for install-complete":          func() error { return waitInstall(ctx, options.directory, log) },
		"gather bootstrap":                   func() error { return gatherBootstrap(ctx, options, log) },
	}[command]
	if !known {
		return fmt.Errorf("Error executing openshift-install: the lab's stand-in does not implement %q; "+
			"see openshift-install --help", command)
	}
	if command != "version" && command != "coreos print-stream-json" {
		if err := log.open(options.directory); err != nil {
			return err
		}
	}
	return run()
}

// parse takes flags and words in any order.
func parse(arguments []string) (options, error) {
	result := options{}
	flags := flag.NewFlagSet("openshift-install", flag.ContinueOnError)
	flags.SetOutput(devNull{})
	flags.StringVar(&result.directory, "dir", ".", "")
	flags.StringVar(&result.level, "log-level", "info", "")
	flags.StringVar(&result.bootstrap, "bootstrap", "", "")
	flags.Func("master", "", func(value string) error { result.masters = append(result.masters, value); return nil })
	flags.Func("key", "", func(value string) error { result.keys = append(result.keys, value); return nil })
	for {
		err := flags.Parse(arguments)
		if errors.Is(err, flag.ErrHelp) {
			result.help = true
			return result, nil
		}
		if err != nil {
			return result, err
		}
		if arguments = flags.Args(); len(arguments) == 0 {
			result.directory = filepath.Clean(result.directory)
			return result, nil
		}
		result.command = append(result.command, arguments[0])
		arguments = arguments[1:]
	}
}

func printVersion(program string) error {
	fmt.Printf("%s %s\nbuilt from commit %s\nrelease image none\nrelease architecture %s\n", program, Version, commit, runtime.GOARCH)
	return nil
}

type devNull struct{}

func (devNull) Write(data []byte) (int, error) { return len(data), nil }
