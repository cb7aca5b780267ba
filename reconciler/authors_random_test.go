package reconciler_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestAuthorsAtRandom runs random pushes of a bot and a person, several between two fetches, with restarts and errors. The byAuthor rule
// must hold each of the bot's versions, even if later commits change other files, comments or settings. At the end, a person's version
// begins.
func TestAuthorsAtRandom(t *testing.T) {
	seeds := 10
	if testing.Short() {
		seeds = 4
	}
	for seed := range uint64(seeds) {
		rng, r := rand.New(rand.NewPCG(seed, 7)), &rules{}
		r.set(t, byBots)
		w := newWorld(t, r.options)
		past := &pastOf{mirror: w.git}
		w.restart(past)
		var trace, ofBot []string
		push := func(what string, files map[string]string) {
			trace = append(trace, what+" by "+w.git.author)
			w.commit(what, files)
		}
		for i := range 40 {
			w.git.author = []string{bot, "Ann"}[rng.IntN(2)]
			switch rng.IntN(8) {
			case 0, 1:
				v := fmt.Sprint("v", i+2)
				if w.git.author == bot {
					ofBot = append(ofBot, v)
				}
				push(v, shopAt(v))
			case 2:
				push("readme", map[string]string{"README.md": fmt.Sprint(i)})
			case 3:
				push("comment", map[string]string{"apps/shop/config.yaml": configMap + fmt.Sprintf("# %d\n", i)})
			case 4:
				account := []string{"", "  serviceAccount: default/strong\n", "  namespaces: [edge]\n"}[rng.IntN(3)]
				push("settings "+account, map[string]string{configFile: plainConfig + account})
			case 5:
				pattern := []string{"apps/shop", "apps/s*", "app/*"}[rng.IntN(3)]
				push(pattern, map[string]string{configFile: strings.Replace(plainConfig, "apps/*", pattern, 1)})
			case 6:
				past.then = []func() error{nil, func() error { return errors.New("no answer") }}[rng.IntN(2)]
				trace = append(trace, fmt.Sprint("history works: ", past.then == nil))
			case 7:
				trace = append(trace, "restart")
				w.restart(past)
			}
			for range rng.IntN(3) * 4 {
				w.passes(1)
				for _, v := range ofBot {
					if w.pods(v) > 0 {
						t.Fatalf("seed %d: %d pods of %s\n%s", seed, w.pods(v), v, strings.Join(trace, "\n"))
					}
				}
			}
		}
		past.then, w.git.author = nil, "Ann"
		push("the end", map[string]string{"apps/shop/app.yaml": version("vend"), configFile: plainConfig})
		w.passes(40)
		if w.pods("vend") == 0 {
			t.Fatalf("seed %d: held %+v\n%s", seed, w.state().Held, strings.Join(trace, "\n"))
		}
	}
}
