package node

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"metal-ipi.test/lab/openshift/kube"
)

const imageDirectory = "/var/lib/lab-openshift/images"

// registry is where the facility's boot server has images: lab/openshift/real/release.py says how.
var registry = "http://boot.facility.test/containers/"

// image is a container image on this machine. One that is named by digest is whole, and came from a registry as nodes find
// it (registries.go); of another one those programs are missing that nobody has asked for yet.
type image struct {
	name string
	root string // the directory that a container of it has as its root
}

// Pull fetches an image before a pod asks for it; it returns the exit code. It is what `podman pull` is on a node, where
// podman and the kubelet's runtime keep their images in one place.
func Pull(name string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	it, err := pull(ctx, os.Getenv("LAB_ROOT"), name)
	if err == nil {
		_, err = it.program(ctx, "")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		return 125
	}
	return 0
}

// pull has the image's files on this machine.
func pull(ctx context.Context, root, name string) (image, error) {
	it := image{name: name, root: filepath.Join(root, imageDirectory, url.PathEscape(name))}
	return it, it.once(ctx, ".complete", func(target string) error {
		if it.byDigest() {
			return errors.Join(download(ctx, root, name, it.root), os.WriteFile(target, nil, 0o600))
		}
		archive, err := fetch(ctx, name+"/files.tar")
		switch {
		case errors.Is(err, fs.ErrNotExist):
			err = nil // it has nothing but programs
		case err != nil:
			return err
		default:
			err = errors.Join(unpack(archive, it.root), archive.Close())
		}
		return errors.Join(err, os.WriteFile(target, nil, 0o600))
	})
}

func (i image) byDigest() bool { return strings.Contains(i.name, "@sha256:") }

// program is the path, within the image, of one of its programs; without a name that of its entry point.
func (i image) program(ctx context.Context, name string) (string, error) {
	if i.byDigest() {
		if name == "" {
			data, err := os.ReadFile(filepath.Join(i.root, entrypointFile))
			if err != nil {
				return "", err
			}
			name = string(data)
		}
		path := "/usr/bin/" + filepath.Base(name)
		_, err := os.Stat(filepath.Join(i.root, path))
		return path, err
	}
	if name == "" {
		text, err := fetch(ctx, i.name+"/entrypoint")
		if err != nil {
			return "", err
		}
		defer text.Close()
		data, err := io.ReadAll(io.LimitReader(text, 1<<10))
		if err != nil {
			return "", err
		}
		name = strings.TrimSpace(string(data))
	}
	path := "usr/bin/" + filepath.Base(name)
	return "/" + path, i.once(ctx, path, func(target string) error {
		program, err := fetch(ctx, i.name+"/bin/"+filepath.Base(name))
		if err != nil {
			return err
		}
		return errors.Join(write(target, program, 0o755), program.Close())
	})
}

// once makes a file of the image by `make`, which is given another path to write to, unless it is there. Whoever else
// asks at the same time waits.
func (i image) once(ctx context.Context, path string, make func(target string) error) error {
	target := filepath.Join(i.root, path)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	lock, err := os.OpenFile(i.root+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close() // and with it the lock
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	if _, err := os.Stat(target); err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	if err := make(target + ".new"); err != nil {
		return fmt.Errorf("pulling %s: %w", i.name, err)
	}
	return os.Rename(target+".new", target)
}

// fetch is a file of the registry; fs.ErrNotExist where there is none.
func fetch(ctx context.Context, path string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, registry+path, nil)
	if err != nil {
		return nil, err
	}
	network, err := kube.NetworkFromEnv()
	if err != nil {
		return nil, err
	}
	// As cri-o and podman do: by the proxy that the machine's configuration names, if it names one.
	client := http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: network.Dial, DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode == http.StatusOK {
		return answer.Body, nil
	}
	answer.Body.Close()
	if answer.StatusCode == http.StatusNotFound {
		return nil, fmt.Errorf("%s: %w", request.URL, fs.ErrNotExist)
	}
	return nil, fmt.Errorf("%s: %s", request.URL, answer.Status)
}

func unpack(archive io.Reader, root string) error {
	for reader := tar.NewReader(archive); ; {
		entry, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if !filepath.IsLocal(entry.Name) {
			return fmt.Errorf("files.tar: %q leaves the image", entry.Name)
		}
		if entry.Typeflag == tar.TypeDir {
			continue // each file makes its own
		}
		path := filepath.Join(root, entry.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := write(path, reader, entry.FileInfo().Mode().Perm()); err != nil {
			return err
		}
	}
}

func write(path string, data io.Reader, mode fs.FileMode) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, data)
	return errors.Join(err, file.Close())
}
