package git

import (
	"context"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/gittest"
)

func TestSmoke(t *testing.T) {
	repo := gittest.New(t)
	repo.CommitFiles("first", map[string]string{"a/b.txt": "one\n", "c": "two"})
	ssh := repo.SSH(gittest.SSHOptions{})
	ssh0 := repo.SSH(gittest.SSHOptions{NoProtocolV2: true})
	h0 := repo.HTTP(gittest.HTTPOptions{})
	h0.Fault(gittest.Faults{ProtocolV0: true})
	for name, o := range map[string]Options{
		"http": {URL: repo.HTTP(gittest.HTTPOptions{}).URL}, "http0": {URL: h0.URL},
		"git": {URL: repo.Daemon().URL}, "file": {URL: repo.Bare},
		"ssh":  {URL: ssh.URL, Auth: Auth{KnownHosts: ssh.KnownHosts, SSHKeyFile: ssh.KeyFile}},
		"ssh0": {URL: ssh0.URL, Auth: Auth{KnownHosts: ssh0.KnownHosts, SSHKeyFile: ssh0.KeyFile}},
	} {
		t.Run(name, func(t *testing.T) {
			o.Cluster = name
			ctx := context.Background()
			r, err := Open(ctx, o)
			if err != nil {
				t.Fatal(err)
			}
			h, err := r.Fetch(ctx)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%+v %+v", h, r.Stats())
			before := r.Stats()
			start := time.Now()
			h, err = r.Fetch(ctx)
			t.Logf("idle: %v %+v %v -> %+v", err, h, time.Since(start), r.Stats())
			_ = before
			s, err := r.Snapshot(ctx, h.Main)
			if err != nil {
				t.Fatal(err)
			}
			b, err := s.ReadFile("a/b.txt")
			t.Logf("%q %v", b, err)
			id, err := r.Push(ctx, Update{Ref: r.StateBranch(), Edits: map[string][]byte{"apps/x/y.yaml": []byte("hi")}, Message: "m", When: time.Unix(1700000000, 0)})
			t.Log(id, err)
			if err != nil {
				t.Fatal(err)
			}
			repo.CommitFiles("again", map[string]string{"a/new" + name: name})
			before = r.Stats()
			h, err = r.Fetch(ctx)
			after := r.Stats()
			t.Logf("%+v %v sent %d received %d", h, err, after.Sent-before.Sent, after.Received-before.Received)
			repo.Fsck()
		})
	}
}
