package source

import (
	"cmp"
	"fmt"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// States holds one commit of the state branch.
type States struct {
	Cluster *rollout.Cluster  // owner; nil without cluster.yaml
	Files   map[string]string // blob ids of state files, by app

	tree Snapshot
}

// ReadStates lists state files, or none if tree is nil. If cluster.yaml is invalid, the error is an InvalidError.
func ReadStates(tree Snapshot) (*States, error) {
	s := &States{tree: tree, Files: map[string]string{}}
	if tree == nil {
		return s, nil
	}
	var err error
	if s.Cluster, err = ReadCluster(tree); err != nil {
		return nil, fmt.Errorf("state branch: %w", err)
	}
	groups, err := ReadDir(tree, "apps")
	if err != nil {
		return nil, err
	}
	for _, group := range groups {
		entries, err := ReadDir(tree, "apps/"+group.Name)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if name, ok := strings.CutSuffix(e.Name, ".yaml"); ok && e.Kind == rollout.File {
				s.Files[name] = e.ID
			}
		}
	}
	return s, nil
}

// ReadCluster returns a state branch's owner, or nil without cluster.yaml. It refuses a commit with the folder
// .gitrollout, because gitrollout may have signed the commit as a proposal.
func ReadCluster(tree rollout.Tree) (*rollout.Cluster, error) {
	data, found, err := ReadFile(tree, rollout.ClusterPath)
	if err != nil || !found {
		return nil, err
	}
	if _, isUsers, err := tree.Lookup(".gitrollout"); err != nil || isUsers {
		return nil, cmp.Or(err, error(rollout.Invalidf(rollout.ClusterPath, "", "is beside the folder .gitrollout, "+
			"so the commit is no record").WithFix("reset the state branch to the last commit that gitrollout made")))
	}
	return rollout.ParseCluster(data)
}

// Of returns an app's state, or the zero value.
func (s *States) Of(app string) (rollout.State, error) {
	id := s.Files[app]
	if id == "" {
		return rollout.State{}, nil
	}
	file := rollout.StatePath(app)
	data, err := s.tree.ReadBlob(id)
	if err != nil {
		return rollout.State{}, fmt.Errorf("state file %s: %w", file, err)
	}
	state, err := rollout.ParseState(file, data)
	if err != nil {
		return rollout.State{}, fmt.Errorf("state file %s: %w", file, err)
	}
	return *state, nil
}
