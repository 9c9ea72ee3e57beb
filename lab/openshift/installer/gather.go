package installer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// gatherBootstrap fetches a log bundle from the bootstrap machine with the ssh program of this system. Like the real
// one it trusts whatever host key it meets. Of control plane machines the stand-in gathers nothing.
func gatherBootstrap(ctx context.Context, options options, log *logger) error {
	if options.bootstrap == "" || len(options.masters) == 0 {
		return errors.New("bootstrap host address and at least one control plane host address must be provided")
	}
	log.info("Pulling debug logs from the bootstrap machine")
	id := time.Now().Format("20060102150405")
	script := fmt.Sprintf("/usr/local/bin/installer-gather.sh --id %s %s", id, strings.Join(options.masters, " "))
	if _, err := ssh(ctx, options, script); err != nil {
		return fmt.Errorf("failed to run remote command: %w", err)
	}
	bundle, err := ssh(ctx, options, fmt.Sprintf("cat /home/core/log-bundle-%s.tar.gz", id))
	if err != nil {
		return fmt.Errorf("failed to pull log file from remote: %w", err)
	}
	path, err := filepath.Abs(filepath.Join(options.directory, fmt.Sprintf("log-bundle-%s.tar.gz", id)))
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, bundle, 0o600); err != nil {
		return err
	}
	log.info("Bootstrap gather logs captured here %q", path)
	return nil
}

func ssh(ctx context.Context, options options, command string) ([]byte, error) {
	arguments := []string{
		"-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
		"-o", "LogLevel=ERROR",
	}
	for _, key := range options.keys {
		arguments = append(arguments, "-i", key)
	}
	process := exec.CommandContext(ctx, "ssh", append(arguments, "core@"+options.bootstrap, command)...)
	output, err := process.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return nil, fmt.Errorf("%w: %s", err, strings.TrimSpace(string(failed.Stderr)))
	}
	return output, err
}
