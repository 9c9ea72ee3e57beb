package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

const (
	// encapsulated is what the machine config server leaves for the machine config daemon's first boot; the daemon renames
	// it when it is done (machine-config-operator, pkg/daemon/constants).
	encapsulated = "/etc/ignition-machine-config-encapsulated.json"
	// liveMarker is CoreOS's way to say that the system runs from memory.
	liveMarker = "/run/ostree-live"
)

// FirstBoot takes the place of the machine config daemon at a machine's first boot: the real one puts the release's
// operating system on the disk, and restarts the machine. Here only the restart is left of it. A system that runs from
// memory has nothing to put another system on, and fails as the real one does.
func FirstBoot() int {
	return supervised("machine-config-daemon", firstBoot)
}

func firstBoot(ctx context.Context, host machine) error {
	path := filepath.Join(host.root, encapsulated)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, err := os.Stat(filepath.Join(host.root, liveMarker)); err == nil {
		return errors.New("this system runs from memory: there is no deployment on a disk to rebase to the release's operating system")
	}
	if err := os.Rename(path, path+".bak"); err != nil {
		return err
	}
	syscall.Sync()
	host.log.Print("initiating reboot: Completing firstboot provisioning (lab stand-in)")
	if output, err := exec.Command("systemctl", "reboot").CombinedOutput(); err != nil {
		return fmt.Errorf("systemctl reboot: %w: %s", err, output)
	}
	<-ctx.Done() // nothing that comes after this may start before the machine goes down
	return nil
}
