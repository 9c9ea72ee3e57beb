package node

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"metal-ipi.test/lab/openshift/kube"
)

const (
	gossipEvery = 2 * time.Second        // at the latest
	gossipPause = 200 * time.Millisecond // between exchanges, when there is something new
	gossipLimit = 4 * time.Second
	forgetAfter = time.Minute
)

// message is what one API server tells another.
type message struct {
	Instance string  `json:"instance"`
	Entries  []Entry `json:"entries"`
}

// gossip keeps the objects of all API servers the same: each tells each what is new to it. It stands where etcd
// will; it promises that all agree in the end, not that a reader sees every write at once.
type gossip struct {
	store    *Store
	instance string
	name     string // the name behind which API servers are found, also in their certificates
	network  kube.Network
	config   *tls.Config
	log      *log.Logger

	// first says that there may be nobody to hear anything from: this is the bootstrap machine, or the only one.
	first bool

	mu    sync.Mutex
	peers map[string]*peer     // by address
	heard map[string]time.Time // when another one last spoke to us, by its address
	done  bool                 // whether a first round is over
	met   bool                 // whether another one was ever spoken to
}

type peer struct {
	client   *kube.Client
	instance string
	sent     uint64 // how much of the store's history the peer has
	failing  bool
}

// Ready says whether this server knows what the others know. One that knows nothing yet must have spoken to another:
// whoever announces the API's address reaches itself behind the internal name, and nobody else.
func (g *gossip) Ready() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.done && (g.first || g.met || g.store.Get(bootstrapName) != nil)
}

// Heard takes note of another server that spoke to us: from then on it is spoken to, even if no name leads to it.
func (g *gossip) Heard(remote string) {
	address, _, err := net.SplitHostPort(remote)
	if err != nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.heard[address] = time.Now()
	g.met = true
}

// Run exchanges until the context ends.
func (g *gossip) Run(ctx context.Context) {
	for ctx.Err() == nil {
		changed := g.store.Changed()
		g.round(ctx)
		sleep(ctx, gossipPause)
		select {
		case <-changed:
		case <-time.After(gossipEvery):
		case <-ctx.Done():
		}
	}
}

func (g *gossip) round(ctx context.Context) {
	g.each(ctx, func(ctx context.Context, address string, p *peer) {
		entries, seq := g.store.Since(p.sent)
		first := p.instance == ""
		if first {
			entries = nil // to learn who it is: it may be this server itself
		}
		instance, err := g.send(ctx, p, entries)
		if (err != nil) != p.failing {
			p.failing = err != nil
			if err != nil {
				g.log.Printf("API server %s does not answer: %v", address, err)
			} else {
				g.log.Printf("API server %s answers", address)
			}
		}
		switch {
		case err != nil:
		case instance == p.instance:
			p.sent = seq
		default: // a new one, or one that started anew and knows nothing
			p.instance, p.sent = instance, 0
			if instance == g.instance {
				return
			}
			g.mu.Lock()
			g.met = true
			g.mu.Unlock()
			entries, seq = g.store.Since(0)
			if _, err = g.send(ctx, p, entries); err == nil {
				p.sent = seq
			}
		}
	})
	g.mu.Lock()
	g.done = true
	g.mu.Unlock()
}

// Everywhere tells these servers of an entry, and fails unless all of them took it.
func (g *gossip) Everywhere(ctx context.Context, addresses []string, entry Entry) error {
	for _, address := range addresses {
		if _, err := g.send(ctx, g.peer(address), []Entry{entry}); err != nil {
			return err
		}
	}
	return nil
}

// each calls for every peer at once and waits for all; this server is left out once it has recognised itself.
func (g *gossip) each(ctx context.Context, call func(context.Context, string, *peer)) {
	ctx, cancel := context.WithTimeout(ctx, gossipLimit)
	defer cancel()
	var group sync.WaitGroup
	for _, address := range g.addresses(ctx) {
		if p := g.peer(address); p.instance != g.instance {
			group.Add(1)
			go func() {
				defer group.Done()
				call(ctx, address, p)
			}()
		}
	}
	group.Wait()
}

func (g *gossip) send(ctx context.Context, p *peer, entries []Entry) (string, error) {
	var answer message
	err := p.client.Do(ctx, http.MethodPost, gossipPath, message{Instance: g.instance, Entries: entries}, &answer)
	return answer.Instance, err
}

// addresses is where API servers may be: behind the internal name, on every control plane node, and wherever one spoke
// to us from lately.
func (g *gossip) addresses(ctx context.Context) []string {
	found, err := g.network.Lookup(ctx, g.name)
	if err != nil {
		g.log.Printf("%s: %v", g.name, err)
	}
	for _, node := range controlPlaneNodes(g.store.List(kube.Nodes), time.Now()) {
		if address := internalAddress(node); address != "" {
			found = append(found, address)
		}
	}
	g.mu.Lock()
	for address, when := range g.heard {
		if time.Since(when) < forgetAfter {
			found = append(found, address)
		}
	}
	g.mu.Unlock()
	unique := []string{}
	seen := map[string]bool{}
	for _, address := range found {
		if !seen[address] {
			seen[address] = true
			unique = append(unique, address)
		}
	}
	return unique
}

func (g *gossip) peer(address string) *peer {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.peers[address] == nil {
		config := g.config.Clone()
		config.ServerName = g.name
		base := "https://" + net.JoinHostPort(address, apiPort)
		g.peers[address] = &peer{client: kube.NewClient(base, config, g.network, gossipLimit)}
	}
	return g.peers[address]
}

// receive serves a peer's message.
func (s *server) receive(_ resource, _ user, request *http.Request) (int, any, error) {
	var told message
	if err := json.NewDecoder(io.LimitReader(request.Body, 64<<20)).Decode(&told); err != nil {
		return 0, nil, fail(http.StatusBadRequest, "BadRequest", "not a message: %v", err)
	}
	if told.Instance != s.instance {
		s.heard(request.RemoteAddr)
		s.store.Merge(told.Entries)
	}
	return http.StatusOK, message{Instance: s.instance}, nil
}
