package node

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

const (
	imageDirectory = "/var/lib/lab-openshift/images"
	// registry is where the facility's boot server has images: lab/network/stream.py.
	registry = "http://boot.facility.test/containers/"
)

// Pull fetches an image before a pod asks for it; it returns the exit code. It is what `podman pull` is on a node, where
// podman and the kubelet's runtime keep their images in one place.
func Pull(image string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if _, err := pull(ctx, os.Getenv("LAB_ROOT"), image); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		return 125
	}
	return 0
}

// pull is the program of an image, fetched once, whoever asks for it at the same time.
func pull(ctx context.Context, root, name string) (string, error) {
	program := filepath.Join(root, imageDirectory, url.PathEscape(name))
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		return "", err
	}
	lock, err := os.OpenFile(program+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer lock.Close() // and with it the lock
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	if err := download(ctx, name, program+".new"); err != nil {
		return "", fmt.Errorf("pulling %s: %w", name, err)
	}
	return program, os.Rename(program+".new", program)
}

func download(ctx context.Context, name, path string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, registry+name, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", request.URL, answer.Status)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(file, answer.Body); err != nil {
		_ = file.Close() // the first error counts
		return err
	}
	return file.Close()
}
