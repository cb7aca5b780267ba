package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// mostVague is the allowed number of vague words in 10,000 words of one kind of text.
const mostVague = 6

// vague matches words in place of a noun: "what it is", "who waits", "nobody", "one of those", "of its own".
var vague = func() (all []*regexp.Regexp) {
	const verb = `(?:is|are|was|were|has|have|had|does|do|did|can|may|must|will|would|` +
		`needs?|waits?|says?|asks?|goes|made|makes|comes|runs?|keeps?|takes?)`
	for _, pattern := range []string{
		`\bwhat (?:(?:(?:the|an?) )?\w+ )?` + verb + `\b`,
		`\b(?:is|are|was|were|of|for) what\b`,
		`\b(?:nobody|somebody|whoever|anybody|everybody)\b`,
		`\b(?:those|that|one|ones) (?:of|who)\b`,
		`\bwho ` + verb + `\b`,
		`\bof (?:its|their) own\b`,
	} {
		all = append(all, regexp.MustCompile(pattern))
	}
	return all
}()

// prose counts the words of one kind of text and lists the vague words.
type prose struct {
	words int
	hits  []string
}

func (p *prose) add(at, text string) {
	text = strings.Join(strings.Fields(text), " ")
	p.words += strings.Count(text, " ") + 1
	for _, pattern := range vague {
		for _, m := range pattern.FindAllStringIndex(text, -1) {
			p.hits = append(p.hits, fmt.Sprintf("%s: %s", at, text[max(0, m[0]-40):min(len(text), m[1]+40)]))
		}
	}
}

func (p *prose) check(t *testing.T) {
	t.Helper()
	t.Logf("%d of %d words are vague", len(p.hits), p.words)
	if len(p.hits)*10_000 > mostVague*p.words {
		t.Errorf("%d of %d words are vague, more than %d of 10,000; write the noun:\n%s",
			len(p.hits), p.words, mostVague, strings.Join(p.hits, "\n"))
	}
}

// TestLanguage limits the vague words in comments, string literals and pages.
func TestLanguage(t *testing.T) {
	kinds := map[string]*prose{"comments": {}, "comments of tests": {}, "texts": {}, "texts of tests": {}, "pages": {}}
	for _, s := range sources(t) {
		of := ""
		if !s.isProduct() {
			of = " of tests"
		}
		at := func(pos token.Pos) string { return fmt.Sprintf("%s:%d", s.path, s.line(pos)) }
		for _, c := range s.file.Comments {
			kinds["comments"+of].add(at(c.Pos()), c.Text())
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if l, is := n.(*ast.BasicLit); is && l.Kind == token.STRING {
				if text, err := strconv.Unquote(l.Value); err == nil && len(strings.Fields(text)) >= 4 {
					kinds["texts"+of].add(at(l.Pos()), text)
				}
			}
			return true
		})
	}
	fenced := regexp.MustCompile("(?s)```.*?```")
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "examples/*.md", "examples/*/*.md"} {
		pages, err := filepath.Glob(filepath.Join(root, pattern))
		must(t, err)
		for _, page := range pages {
			page = strings.TrimPrefix(page, root+"/")
			kinds["pages"].add(page, fenced.ReplaceAllString(read(t, page), ""))
		}
	}
	for name, p := range kinds {
		t.Run(name, p.check)
	}
}

// TestDocComments checks that the comment of a declaration begins with the declared name.
func TestDocComments(t *testing.T) {
	for _, s := range product(t) {
		check := func(name *ast.Ident, doc *ast.CommentGroup) {
			if doc == nil {
				return
			}
			words := strings.Fields(doc.Text())
			if len(words) > 1 && (words[0] == "A" || words[0] == "An" || words[0] == "The") {
				words = words[1:]
			}
			if len(words) > 0 && strings.TrimRight(words[0], ",:") != name.Name && !strings.HasPrefix(words[0], "Deprecated") {
				t.Errorf("%s:%d: the comment of %s begins with %q", s.path, s.line(doc.Pos()), name.Name, words[0])
			}
		}
		for _, decl := range s.file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				check(d.Name, d.Doc)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if typ, is := spec.(*ast.TypeSpec); is && len(d.Specs) == 1 {
						check(typ.Name, d.Doc)
					}
				}
			}
		}
	}
}
