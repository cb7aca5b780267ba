package main

import "strings"

// livesThrough maps a folder prefix to other packages whose tests use the code below this folder. These tests run if a
// mutant survives the tests of its own package. The longest matching prefix counts.
var livesThrough = map[string][]string{
	"":                     nil,
	"strategies":           {"./reconciler/...", "./views/...", "./simulate"},
	"strategies/workloads": {"./strategies", "./reconciler/...", "./views/...", "./simulate"},
	"strategies/routes":    {"./strategies", "./reconciler/...", "./views/...", "./simulate"},
	"strategies/plan":      {"./strategies", "./reconciler/...", "./views/...", "./simulate"},
	"reconciler":           {"./simulate", "./cmd/gitrollout"},
	"rollout":              {"./strategies", "./render", "./reconciler/...", "./views/...", "./simulate"},
	"analysis":             {"./strategies", "./reconciler/...", "./cmd/gitrollout"},
	"traffic":              {"./strategies", "./simulate", "./cmd/gitrollout"},
	"git":                  {"./reconciler/...", "./cmd/gitrollout"},
	"render":               {"./cmd/gitrollout"},
	"cluster":              {"./cmd/gitrollout"},
	"publish":              {"./cmd/gitrollout"},
	"views":                {"./cmd/gitrollout"},
	"author":               {"./cmd/gitrollout"},
	"simulate":             {"./cmd/gitrollout"},
	"simulate/kube":        {"./simulate"},
	"simulate/memgit":      {"./simulate", "./reconciler"},
	"cmd":                  nil,
	"analysis/provider":    {"./reconciler/measure"},
	"git/wire":             {"./git", "./cmd/gitrollout"},
	"git/sign":             {"./git", "./cmd/gitrollout"},
	"call":                 {"./publish/...", "./analysis/provider"},
}

func others(folder string) []string {
	longest := ""
	for beginning := range livesThrough {
		if strings.HasPrefix(folder+"/", beginning+"/") && len(beginning) > len(longest) {
			longest = beginning
		}
	}
	return livesThrough[longest]
}
