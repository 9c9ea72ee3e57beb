package node

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	inmemory "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

const (
	source419 = "quay.invalid/openshift/release"
	secret419 = "mirror:swordfish"
)

// mirrorOf serves a registry with TLS and an account, and an image in it; the result is where it is, its digest, and the
// authority of its certificate.
func mirrorOf(t *testing.T, files map[string]string) (host, digest string, authority []byte) {
	t.Helper()
	inside := inmemory.New()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user+":"+password != secret419 {
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		inside.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	host = strings.TrimPrefix(server.URL, "https://")
	layer := must(tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(archive(t, files))), nil
	}))
	image := must(mutate.AppendLayers(empty.Image, layer))
	image = must(mutate.Config(image, v1.Config{Entrypoint: []string{"run"}}))
	from := &registries{accounts: map[string]string{host: base64.StdEncoding.EncodeToString([]byte(secret419))}}
	reference := must(name.NewTag(host + "/mirror/release:latest"))
	check(t, remote.Write(reference, image, remote.WithAuth(from.account(host)), remote.WithTransport(server.Client().Transport)))
	return host, must(image.Digest()).String(), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

// toldMachine writes what a machine is told of registries.
func toldMachine(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for path, text := range files {
		put(t, filepath.Join(root, path), text, 0o600)
	}
	return root
}

func TestAnImageByDigestIsPulledFromTheMirror(t *testing.T) {
	host, digest, authority := mirrorOf(t, map[string]string{"usr/bin/run": "program", "etc/told": "hello"})
	files := map[string]string{
		registriesFile: "[[registry]]\nprefix = \"\"\nlocation = \"quay.invalid/openshift\"\n[[registry.mirror]]\nlocation = \"" + host +
			"/nowhere\"\n[[registry.mirror]]\nlocation = \"" + host + "/mirror\"\npull-from-mirror = \"digest-only\"\n",
		pullSecrets[0]:      `{"auths": {"` + host + `": {"auth": "` + base64.StdEncoding.EncodeToString([]byte(secret419)) + `"}}}`,
		anchors + "/ca.crt": string(authority),
	}
	ctx, wanted := context.Background(), source419+"@"+digest
	root := toldMachine(t, files)
	it := must(pull(ctx, root, wanted))
	program, err := it.program(ctx, "")
	if err != nil || program != "/usr/bin/run" || readOr(filepath.Join(it.root, "etc/told"), "") != "hello" {
		t.Fatal(program, err)
	}
	if _, err := it.program(ctx, "other"); err == nil {
		t.Error("a program that is not in the image was found")
	}
	for missing, words := range map[string]string{
		registriesFile: "quay.invalid", pullSecrets[0]: "401", anchors + "/ca.crt": "certificate",
	} {
		less := map[string]string{}
		for path, text := range files {
			if path != missing {
				less[path] = text
			}
		}
		if _, err := pull(ctx, toldMachine(t, less), wanted); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("without %s: %v", missing, err)
		}
	}
}

func TestWhereAnImageMayBe(t *testing.T) {
	root := toldMachine(t, map[string]string{registriesFile: `
[[registry]]
location = "quay.io/a"
[[registry.mirror]]
location = "one.test/x"
[[registry]]
location = "quay.io/a/b"
[[registry.mirror]]
location = "two.test/y"
[[registry]]
location = "quay.io/closed"
blocked = true
[[registry.mirror]]
location = "three.test"
`})
	from := must(readRegistries(root))
	for image, places := range map[string][]string{
		"quay.io/a/c@sha256:1":      {"one.test/x/c@sha256:1", "quay.io/a/c@sha256:1"},
		"quay.io/a/b@sha256:1":      {"two.test/y@sha256:1", "quay.io/a/b@sha256:1"},
		"quay.io/ab@sha256:1":       {"quay.io/ab@sha256:1"},
		"quay.io/closed/z@sha256:1": {"three.test/z@sha256:1"},
	} {
		if found := from.places(image); !slices.Equal(found, places) {
			t.Errorf("%s: %v", image, found)
		}
	}
}
