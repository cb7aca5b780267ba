package scaffold

import "gitrollout.dev/gitrollout/rollout"

func (p *Proposal) Choose(roots []string) string { return p.choose(roots) } // chooses the environment of a cluster

// Matches reports whether an entry matches the given folders and no others.
func (p *Proposal) Matches(tree rollout.Tree, e Entry, folders []string) bool {
	return p.matches(tree, e, folders)
}

var (
	LikeAll       = likeAll       // merges the settings of a group of folders
	Environment   = environment   // returns the environment in a folder's name
	GlobOf        = globOf        // returns the glob of a folder
	NameOf        = nameOf        // returns the name of a folder's app
	VariablesText = variablesText // writes the variables of an entry
	ConfigText    = configText    // writes a configuration
)

// Roots returns the kustomizations that can be apps.
func (s *Survey) Roots() []string { return s.roots() }

// Looked returns s with the maps that Look creates, and with the given engines.
func (s Survey) Looked(engines ...string) Survey {
	s.engines, s.sources, s.ConfigMaps = engines, map[sourceRef]fluxSource{}, map[string][]string{}
	return s
}
