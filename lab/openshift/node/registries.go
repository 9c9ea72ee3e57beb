package node

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Where podman, and the kubelet's runtime, find what the machine was told of registries.
const (
	registriesFile = "/etc/containers/registries.conf"
	anchors        = "/etc/pki/ca-trust/source/anchors"
	entrypointFile = ".entrypoint" // within an image's files here: the program that runs when a pod names none
)

// pullSecrets are where a node's runtime has its accounts from, and where the bootstrap machine's podman has them from.
var pullSecrets = []string{"/var/lib/kubelet/config.json", "/root/.docker/config.json"}

// registries is what this machine asks registries with.
type registries struct {
	sources   []source
	accounts  map[string]string // by the place that they are for: `user:password`, base64
	transport http.RoundTripper
}

// source is a [[registry]] of registries.conf(5), as far as the installer and the machine config controller write it.
type source struct {
	Location string `toml:"location"`
	Prefix   string `toml:"prefix"`
	Blocked  bool   `toml:"blocked"`
	Mirrors  []struct {
		Location string `toml:"location"`
	} `toml:"mirror"`
}

func (s source) prefix() string { return cmp.Or(s.Prefix, s.Location) }

func readRegistries(root string) (*registries, error) {
	var told struct {
		Registries []source `toml:"registry"`
	}
	if _, err := toml.DecodeFile(filepath.Join(root, registriesFile), &told); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	found := &registries{sources: told.Registries, accounts: map[string]string{}}
	for _, path := range pullSecrets {
		data, err := os.ReadFile(filepath.Join(root, path))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var secret struct {
			Auths map[string]struct{ Auth string }
		}
		if err := errors.Join(err, json.Unmarshal(data, &secret)); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for place, account := range secret.Auths {
			found.accounts[place] = account.Auth
		}
		break
	}
	trusted, err := x509.SystemCertPool()
	if err != nil {
		return nil, err
	}
	bundles, _ := filepath.Glob(filepath.Join(root, anchors, "*")) // the pattern is good
	for _, path := range bundles {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		trusted.AppendCertsFromPEM(data)
	}
	found.transport = &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12},
	}
	return found, nil
}

// places is where an image that is named by digest may be, in the order in which a node asks: the mirrors of the source
// that matches longest, then the place itself.
func (r *registries) places(image string) []string {
	var best source
	for _, each := range r.sources {
		prefix := each.prefix()
		if covers(prefix, image) && len(prefix) > len(best.prefix()) {
			best = each
		}
	}
	found := []string{}
	for _, mirror := range best.Mirrors {
		found = append(found, mirror.Location+strings.TrimPrefix(image, best.prefix()))
	}
	if best.Blocked {
		return found
	}
	return append(found, image)
}

// covers says whether a name of a registry, or of what is in it, is a place's or of something below it.
func covers(place, image string) bool {
	rest, found := strings.CutPrefix(image, place)
	return found && (rest == "" || strings.ContainsAny(rest[:1], "/@:"))
}

func (r *registries) account(image string) authn.Authenticator {
	best, found := "", authn.Anonymous
	for place, auth := range r.accounts {
		data, err := base64.StdEncoding.DecodeString(auth)
		user, password, whole := strings.Cut(string(data), ":")
		if covers(place, image) && len(place) > len(best) && err == nil && whole {
			best, found = place, &authn.Basic{Username: user, Password: password}
		}
	}
	return found
}

// open finds an image in the first of its places that has it.
func (r *registries) open(ctx context.Context, image string) (v1.Image, error) {
	var said []error
	for _, place := range r.places(image) {
		digest, err := name.NewDigest(place)
		if err != nil {
			return nil, err
		}
		found, err := remote.Image(digest, remote.WithContext(ctx), remote.WithAuth(r.account(place)), remote.WithTransport(r.transport))
		if err == nil {
			return found, nil
		}
		said = append(said, fmt.Errorf("%s: %w", place, err))
	}
	return nil, errors.Join(said...)
}

// download has all files of an image of a registry in a directory, and its entry point beside them.
func download(ctx context.Context, root, image, target string) error {
	from, err := readRegistries(root)
	if err != nil {
		return err
	}
	found, err := from.open(ctx, image)
	if err != nil {
		return err
	}
	config, err := found.ConfigFile()
	if err != nil {
		return err
	}
	files := mutate.Extract(found)
	defer files.Close()
	if err := unpack(files, target); err != nil {
		return err
	}
	entrypoint := strings.Join(config.Config.Entrypoint, " ")
	return os.WriteFile(filepath.Join(target, entrypointFile), []byte(entrypoint), 0o600)
}
