package git_test

import (
	"slices"
	"testing"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/internal/gittest"
)

// TestOutside checks that Outside returns the listed commits that are not ancestors of a given commit. At first, the mirror has only the
// head. One server supports filters, and another does not.
func TestOutside(t *testing.T) {
	for name, filter := range map[string]string{"commits alone": "true", "with their files": "false"} {
		t.Run(name, func(t *testing.T) {
			p := &promoted{Repo: gittest.New(t), t: t}
			p.InBare("config", "uploadpack.allowFilter", filter)
			first := p.CommitFiles("first", map[string]string{"f": "1"})
			side := ""
			p.branch("side", func() { side = p.CommitFiles("aside", map[string]string{"g": "1"}) })
			p.other(60)
			p.Merge("side")
			stranger := ""
			p.branch("gitrollout/promote/prod/zzz", func() { stranger = p.CommitFiles("a stranger's", map[string]string{"f": "evil"}) })
			last := p.CommitFiles("last", map[string]string{"f": "2"})
			r := open(t, git.Options{URL: p.HTTP(gittest.HTTPOptions{}).URL})
			fetch(t, r)
			snapshot(t, r, stranger) // Outside must return this commit even though the mirror has it
			unknown := "0123456789012345678901234567890123456789"
			got, err := r.Outside(t.Context(), last, []string{first, stranger, side, unknown, last})
			if want := []string{stranger, unknown}; err != nil || !slices.Equal(got, want) {
				t.Errorf("outside are %v, %v; want %v", got, err, want)
			}
			if got, err := r.Outside(t.Context(), side, []string{last, first}); err != nil || !slices.Equal(got, []string{last}) {
				t.Errorf("outside of the side branch are %v, %v", got, err)
			}
		})
	}
}
