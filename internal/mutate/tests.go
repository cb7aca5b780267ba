package main

import "strings"

// livesThrough are the packages whose tests live through a package's code, by
// the beginning of its folder: they are asked when the package's own tests
// noticed nothing. The longest beginning counts.
var livesThrough = map[string][]string{
	"":                  nil,
	"strategies":        {"./simulate"},
	"reconciler":        {"./simulate", "./cmd/gitrollout"},
	"rollout":           {"./strategies", "./simulate"},
	"analysis":          {"./strategies", "./reconciler/..."},
	"traffic":           {"./strategies", "./simulate"},
	"git":               {"./reconciler/...", "./cmd/gitrollout"},
	"render":            {"./cmd/gitrollout"},
	"cluster":           {"./cmd/gitrollout"},
	"publish":           {"./cmd/gitrollout"},
	"views":             {"./cmd/gitrollout"},
	"simulate":          nil,
	"simulate/kube":     {"./simulate"},
	"cmd":               nil,
	"analysis/provider": {"./reconciler/measure"},
	"git/wire":          {"./git"},
	"git/sign":          {"./git"},
	"publish/call":      {"./publish/...", "./analysis/provider"},
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
