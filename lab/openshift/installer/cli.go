// Package installer is the lab's stand-in for openshift-install: the commands that an installation on platform none calls,
// with the real one's files and exit codes.
package installer

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
	"time"
)

// Version is what the stand-in calls itself, and the release it installs.
const Version = "4.21.0-lab"

// Exit codes of the real installer.
const (
	exitFailure = 1
	exitConfig  = 3 // the install-config is wrong
)

// streamDefault is where the lab serves its CoreOS stream metadata; the real installer carries its own inside.
const streamDefault = "http://boot.facility.test/streams/lab.json"

const help = `Creates OpenShift clusters (the lab's stand-in: platform none only)

Usage:
  openshift-install [command]

Available Commands:
  coreos print-stream-json          Outputs the CoreOS stream metadata of the lab
  create ignition-configs           Generates the Ignition Config asset
  create manifests                  Generates the Kubernetes manifests
  create single-node-ignition-config
                                    Generates the bootstrap-in-place-for-live-iso Ignition Config asset
  version                           Print version information

Flags:
      --dir string   assets directory (default ".")
`

// Main runs the installer and returns its exit code.
func Main(program string, arguments []string) int {
	err := execute(program, arguments)
	var config *configError
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, &config):
		tell("error", err.Error())
		return exitConfig
	}
	tell("fatal", err.Error())
	return exitFailure
}

func execute(program string, arguments []string) error {
	directory := "."
	flags := flag.NewFlagSet("openshift-install", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() { fmt.Print(help) }
	flags.StringVar(&directory, "dir", directory, "")
	words := []string{}
	for { // flags and words come in any order
		if err := flags.Parse(arguments); err != nil {
			return fmt.Errorf("Error executing openshift-install: %w", err)
		}
		if arguments = flags.Args(); len(arguments) == 0 {
			break
		}
		words, arguments = append(words, arguments[0]), arguments[1:]
	}
	switch command := strings.Join(words, " "); command {
	case "":
		fmt.Print(help)
		return nil
	case "version":
		fmt.Printf("%s %s\nbuilt from commit none: this is the lab's stand-in for openshift-install\n"+
			"release image none\nrelease architecture %s\n", program, Version, runtime.GOARCH)
		return nil
	case "coreos print-stream-json":
		return printStream()
	case "create manifests":
		return createManifests(directory)
	case "create ignition-configs":
		return create(directory, false)
	case "create single-node-ignition-config":
		return create(directory, true)
	default:
		return fmt.Errorf("Error executing openshift-install: the lab's stand-in does not implement %q; "+
			"see openshift-install --help", command)
	}
}

// tell writes a line of the log to standard error, as the real installer does where that is no terminal.
func tell(level, text string) { fmt.Fprintf(os.Stderr, "level=%s msg=%s\n", level, text) }

func printStream() error {
	source := os.Getenv("LAB_OPENSHIFT_STREAM")
	if source == "" {
		source = streamDefault
	}
	if !strings.HasPrefix(source, "http") {
		data, err := os.ReadFile(source)
		if err == nil {
			_, err = os.Stdout.Write(data)
		}
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, source, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("stream metadata: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("stream metadata: %s: %s", source, response.Status)
	}
	_, err = io.Copy(os.Stdout, response.Body)
	return err
}
