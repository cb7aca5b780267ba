package git

import (
	"math/rand/v2"
	"path"
	"sort"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"gitrollout.dev/gitrollout/rollout"
)

// FuzzTreeEdits applies the same edits to trees and to a map from paths to content, and compares the results.
// TestEditsAgainstModel is slower, but compares the results with git's.
func FuzzTreeEdits(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, seed*7)
	}
	f.Fuzz(func(t *testing.T, a, b uint64) {
		r := rand.New(rand.NewPCG(a, b))
		names := []string{"a", "a.b", "a-", "b"}
		st, root, files := newStore(), plumbing.ZeroHash, map[string]string{}
		for range 12 {
			edits := map[string][]byte{}
			for range 1 + r.IntN(3) {
				p := path.Join(names[r.IntN(4)], []string{"", "x", "a.b/y"}[r.IntN(3)])
				if edits[p] = nil; r.IntN(2) > 0 {
					edits[p] = []byte{byte('0' + r.IntN(3))}
				}
			}
			build := &builder{from: st, made: newStore()}
			next, err := build.root(root, rollout.Update{Edits: edits})
			want, ok := applyToMap(files, edits)
			if (err == nil) != ok {
				t.Fatalf("edits %q on %q: %v", edits, files, err)
			}
			if err != nil {
				continue
			}
			st.addAll(build.made)
			if err := st.verifyTree(next); err != nil {
				t.Fatal(err)
			}
			root, files = next, want
			s := &Snapshot{store: st, root: root}
			for p, content := range files {
				if got, err := s.ReadFile(p); string(got) != content || err != nil {
					t.Fatalf("after %q: %s = %q, %v, want %q", edits, p, got, err, content)
				}
			}
			changes, err := Changes(EmptySnapshot(), s, "")
			if err != nil || len(changes) != len(files) {
				t.Fatalf("after %q: %d files, want %d: %v", edits, len(changes), len(files), err)
			}
		}
	})
}

func applyToMap(files map[string]string, edits map[string][]byte) (map[string]string, bool) {
	next := map[string]string{}
	for p, content := range files {
		keep := true
		for e, c := range edits {
			keep = keep && !(c == nil && (p == e || strings.HasPrefix(p, e+"/")))
		}
		if keep {
			next[p] = content
		}
	}
	for p, content := range edits {
		if content != nil {
			next[p] = string(content)
		}
	}
	all := make([]string, 0, len(next))
	for p := range next {
		all = append(all, p+"/")
	}
	sort.Strings(all)
	for i := 1; i < len(all); i++ {
		if strings.HasPrefix(all[i], all[i-1]) {
			return nil, false // a path is both a file and a directory
		}
	}
	return next, true
}
