package doctor_test

import (
	"errors"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/doctor"
)

// brokenTree is a commit in which each path is a file. The file "bad" cannot be read.
type brokenTree struct{ rollout.Tree }

func (brokenTree) Commit() rollout.Commit { return rollout.Commit{} }

func (brokenTree) Lookup(path string) (rollout.Entry, bool, error) {
	return rollout.Entry{Kind: rollout.File, ID: path}, true, nil
}

func (brokenTree) ReadBlob(id string) ([]byte, error) {
	if id == "bad" {
		return nil, errors.New("the object is missing")
	}
	return []byte(id), nil
}

// TestAppOf checks the data of an app: whether the app is known, and the content of its encrypted files. An unreadable file is a finding.
func TestAppOf(t *testing.T) {
	branch := &source.Branch{Cluster: "prod", Tree: brokenTree{}}
	for name, c := range map[string]struct {
		state rollout.State
		want  bool
	}{
		"no record":      {rollout.State{}, false},
		"held":           {rollout.State{Phase: rollout.Pending}, false},
		"without stages": {rollout.State{Phase: rollout.Healthy, Source: "c1"}, true},
		"adopted":        {rollout.State{Phase: rollout.Healthy, Source: "c1", Stable: &rollout.Release{Hash: "h1-1"}}, true},
	} {
		compare.CheckNamed(t, name+": known", c.want, doctor.AppOf(branch, rollout.App{Name: "shop"}, c.state, nil).Known)
	}
	readable := doctor.AppOf(branch, rollout.App{Name: "shop"}, rollout.State{}, &rollout.Render{Unopened: []string{"good"}})
	compare.Check(t, map[string][]byte{"good": []byte("good")}, readable.Encrypted)
	var e doctor.Examination
	broken := doctor.AppOf(branch, rollout.App{Name: "shop"}, rollout.State{}, &rollout.Render{Unopened: []string{"good", "bad"}})
	doctor.Cluster{Apps: []doctor.App{broken}}.ExamineKeys(t.Context(), &e)
	compare.Check(t, []doctor.Finding{{Check: "cluster.keys", Status: doctor.Problem,
		Message: "encrypted files of shop: read bad: the object is missing"}}, e.Findings)
}
