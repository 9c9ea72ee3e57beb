package kube

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path"
	"strings"
	"time"
)

// attempt is how long one address of a name may take to accept a connection; then the next one is tried.
const attempt = 3 * time.Second

// keepAlive ends a connection after 25 s of silence: a server that loses its power says nothing, and who watches would
// wait for it.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3}

// Network is how a process reaches others: from which address, and how it resolves names.
type Network struct {
	Source     string              // own address; empty: the system chooses
	SourceIPv6 string              // own IPv6 address; empty: there is none, or the system chooses
	Static     map[string][]string // names that are not looked up
}

// NetworkFromEnv reads LAB_ADDRESS and LAB_ADDRESS_IPV6.
func NetworkFromEnv() (Network, error) {
	network := Network{Source: os.Getenv("LAB_ADDRESS"), SourceIPv6: os.Getenv("LAB_ADDRESS_IPV6")}
	for name, value := range map[string]string{"LAB_ADDRESS": network.Source, "LAB_ADDRESS_IPV6": network.SourceIPv6} {
		if value != "" && net.ParseIP(value) == nil {
			return Network{}, fmt.Errorf("%s=%q is not an IP address", name, value)
		}
	}
	return network, nil
}

// Lookup is every address of a name.
func (n Network) Lookup(ctx context.Context, host string) ([]string, error) {
	if net.ParseIP(host) != nil {
		return []string{host}, nil
	}
	if addresses, ok := n.Static[host]; ok {
		return addresses, nil
	}
	return net.DefaultResolver.LookupHost(ctx, host)
}

// Sources is this machine's own addresses.
func (n Network) Sources() []string {
	sources := []string{n.Source}
	if n.SourceIPv6 != "" {
		sources = append(sources, n.SourceIPv6)
	}
	return sources
}

// Dial connects to any address of a name, from this machine's own of the same family: behind a name with several, some
// may be gone.
func (n Network) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addresses, err := n.Lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	err = fmt.Errorf("%s has no address", host)
	for _, i := range rand.Perm(len(addresses)) {
		dialer, source := net.Dialer{Timeout: attempt, KeepAliveConfig: keepAlive}, n.Source
		if strings.Contains(addresses[i], ":") {
			source = n.SourceIPv6
		}
		if source != "" {
			dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(source)}
		} else if n.Source != "" {
			err = fmt.Errorf("this machine has no address to reach %s from", addresses[i])
			continue
		}
		var connection net.Conn
		if connection, err = dialer.DialContext(ctx, network, net.JoinHostPort(addresses[i], port)); err == nil {
			return connection, nil
		}
	}
	return nil, err
}

// Client speaks to one API server, or to whichever of several answers.
type Client struct {
	base    string
	http    *http.Client
	endless *http.Client // for watches, which have no limit of their own
	token   string       // of a service account; empty: the client is who its certificate says
	watches *watches
}

// NewClient makes a client of https://host:port; the name in the certificate is that of `tls`, or the host.
func NewClient(base string, config *tls.Config, network Network, timeout time.Duration) *Client {
	transport := &http.Transport{DialContext: network.Dial, TLSClientConfig: config, MaxIdleConnsPerHost: 2}
	return &Client{
		base: base, http: &http.Client{Transport: transport, Timeout: timeout}, endless: &http.Client{Transport: transport}, watches: &watches{},
	}
}

// WithToken is the same client as somebody who proves by a token who he is.
func (c *Client) WithToken(token string) *Client {
	return &Client{base: c.base, http: c.http, endless: c.endless, token: token, watches: &watches{}}
}

// StatusError is an answer other than success.
type StatusError struct {
	Code    int
	Reason  string
	Message string
}

func (e *StatusError) Error() string { return e.Message }

// Code is the HTTP status of an error from the API, 0 of any other.
func Code(err error) int {
	var status *StatusError
	if errors.As(err, &status) {
		return status.Code
	}
	return 0
}

// Merge changes the fields of an object that are said, and no others.
func (c *Client) Merge(ctx context.Context, path string, fields any) error {
	return c.send(ctx, http.MethodPatch, path, "application/merge-patch+json", fields, nil)
}

// Do sends `in` as JSON, unless nil, and reads the answer into `out`, unless nil.
func (c *Client) Do(ctx context.Context, method, path string, in, out any) error {
	return c.send(ctx, method, path, "application/json", in, out)
}

func (c *Client) send(ctx context.Context, method, path, kind string, in, out any) error {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
	}
	request, err := c.request(ctx, method, path, body)
	if err != nil {
		return err
	}
	if in != nil {
		request.Header.Set("Content-Type", kind)
	}
	response, err := c.http.Do(request)
	if err != nil {
		c.http.CloseIdleConnections() // the next attempt shall choose an address anew
		return err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, 64<<20))
	if err != nil {
		return err
	}
	if response.StatusCode >= 300 {
		status := Status{Message: strings.TrimSpace(string(data))}
		// An answer that is no Status object is told as it came.
		_ = json.Unmarshal(data, &status)
		return &StatusError{
			Code: response.StatusCode, Reason: status.Reason,
			Message: fmt.Sprintf("%s %s: %d %s", method, path, response.StatusCode, status.Message),
		}
	}
	if out == nil {
		return nil
	}
	if text, ok := out.(*string); ok {
		*text = string(data)
		return nil
	}
	return json.Unmarshal(data, out)
}

func (c *Client) request(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	return request, nil
}

// Close ends what is followed, and drops the connections that are kept open.
func (c *Client) Close() {
	c.watches.close()
	c.http.CloseIdleConnections()
}

// ErrUnchanged is what a change returns that finds nothing to do.
var ErrUnchanged = errors.New("nothing to change")

// attempts is how often a change is tried that others come before.
const attempts = 5

// Get is the object at a path; nil if there is none.
func (c *Client) Get(ctx context.Context, path string) (Object, error) {
	object := Object{}
	err := c.Do(ctx, http.MethodGet, path, nil, &object)
	if Code(err) == http.StatusNotFound {
		return nil, nil
	}
	return object, err
}

// List is the objects right under a path.
func (c *Client) List(ctx context.Context, path string) ([]Object, error) {
	items, _, err := c.list(ctx, path)
	return items, err
}

// list is the objects right under a path, and of which version the list is.
func (c *Client) list(ctx context.Context, path string) ([]Object, string, error) {
	var list struct {
		Metadata Meta     `json:"metadata"`
		Items    []Object `json:"items"`
	}
	err := c.Do(ctx, http.MethodGet, path, nil, &list)
	return list.Items, list.Metadata.ResourceVersion, err
}

// Update replaces the object at a path by what `change` makes of it, or makes it; `part` is the subresource that changes,
// empty for the object itself; what is made has no other than its status. `change` may be asked again, and must not change
// what it is given.
func (c *Client) Update(ctx context.Context, path, part string, change func(Object) (Object, error)) error {
	_, err := c.UpdateFrom(ctx, path, part, nil, change)
	return err
}

// UpdateFrom is Update for who has the object as it was last seen, unless nil: it is asked for only if others came before.
// The result is the object as it is then.
func (c *Client) UpdateFrom(ctx context.Context, path, part string, seen Object, change func(Object) (Object, error)) (Object, error) {
	if seen != nil {
		written, err := c.replace(ctx, path, part, seen, change)
		if code := Code(err); code != http.StatusConflict && code != http.StatusNotFound {
			return written, err
		}
	}
	var err error
	for range attempts {
		var written Object
		if seen, err = c.Get(ctx, path); err == nil {
			written, err = c.replace(ctx, path, part, seen, change)
		}
		if Code(err) != http.StatusConflict {
			return written, err
		}
	}
	return nil, err
}

// replace writes what `change` makes of the current object, nil if there is none; the result is the object as it is then.
func (c *Client) replace(ctx context.Context, key, part string, current Object, change func(Object) (Object, error)) (Object, error) {
	wanted, err := change(current)
	if errors.Is(err, ErrUnchanged) {
		return current, nil
	}
	if err != nil {
		return nil, err
	}
	if current == nil {
		created := Object{}
		if err := c.Do(ctx, http.MethodPost, path.Dir(key), wanted, &created); err != nil {
			return nil, err
		}
		if part == "" {
			return created, nil
		}
		created[part] = wanted[part] // what the server has added stays
		wanted = created
	}
	if part != "" {
		key += "/" + part
	}
	var written Object
	err = c.Do(ctx, http.MethodPut, key, wanted, &written)
	return written, err
}
