package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

// mutant is one change of one file: the bytes from begin to end become text.
type mutant struct {
	file       string // below the module's root
	at         [2]int // line and column
	begin, end int
	text       string
	what       string // in words, "< becomes <="
}

// apply is the file's content with the change.
func (m mutant) apply(content []byte) []byte {
	changed := append([]byte{}, content[:m.begin]...)
	return append(append(changed, m.text...), content[m.end:]...)
}

// opposites are the operators that are taken for each other.
var opposites = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.EQL: token.NEQ, token.NEQ: token.EQL, token.LAND: token.LOR, token.LOR: token.LAND,
	token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL,
}

// mutantsOf lists every mutant of the product's files in a folder, in order of
// their places.
func mutantsOf(root, folder string) ([]mutant, error) {
	files, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	if err != nil {
		return nil, err
	}
	sort.Strings(files)
	var all []mutant
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		found, err := mutantsIn(root, file)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func mutantsIn(root, file string) ([]mutant, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, content, 0)
	if err != nil {
		return nil, err
	}
	name, err := filepath.Rel(root, file)
	if err != nil {
		return nil, err
	}
	c := collector{set: set, content: content, file: name}
	for _, decl := range parsed.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Body != nil {
			ast.Inspect(f.Body, c.visit)
		}
	}
	return c.found, nil
}

// collector finds the mutants of one file.
type collector struct {
	set     *token.FileSet
	content []byte
	file    string
	found   []mutant
}

func (c *collector) add(begin, end token.Pos, text, what string) {
	at := c.set.Position(begin)
	c.found = append(c.found, mutant{c.file, [2]int{at.Line, at.Column}, at.Offset, c.set.Position(end).Offset, text, what})
}

func (c *collector) source(n ast.Node) string {
	return string(c.content[c.set.Position(n.Pos()).Offset:c.set.Position(n.End()).Offset])
}

func (c *collector) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if other, ok := opposites[n.Op]; ok && !isText(n) {
			end := n.OpPos + token.Pos(len(n.Op.String()))
			c.add(n.OpPos, end, other.String(), n.Op.String()+" becomes "+other.String())
		}
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			c.add(n.OpPos, n.OpPos+1, "", "! goes from "+c.source(n))
		}
	case *ast.BasicLit:
		if v, err := strconv.Atoi(n.Value); err == nil && n.Kind == token.INT {
			c.add(n.Pos(), n.End(), strconv.Itoa(v+1), n.Value+" becomes "+strconv.Itoa(v+1))
		}
	case *ast.Ident:
		if other := map[string]string{"true": "false", "false": "true"}[n.Name]; other != "" {
			c.add(n.Pos(), n.End(), other, n.Name+" becomes "+other)
		}
	case *ast.BlockStmt:
		c.statements(n.List)
	case *ast.CaseClause:
		c.statements(n.Body)
	}
	return true
}

// statements can be left out where that leaves a program: calls for their effect
// and assignments to what is there. An if without its condition always holds.
func (c *collector) statements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt:
			c.add(s.Pos(), s.End(), "", "left out: "+firstLine(c.source(s)))
		case *ast.AssignStmt:
			if s.Tok != token.DEFINE {
				c.add(s.Pos(), s.End(), "", "left out: "+firstLine(c.source(s)))
			}
		case *ast.IfStmt:
			c.add(s.Cond.Pos(), s.Cond.End(), "("+c.source(s.Cond)+") || true", "always: if "+c.source(s.Cond))
			c.add(s.Cond.Pos(), s.Cond.End(), "("+c.source(s.Cond)+") && false", "never: if "+c.source(s.Cond))
		}
	}
}

// isText reports whether an operator joins texts, which have no minus.
func isText(n *ast.BinaryExpr) bool {
	for _, side := range []ast.Expr{n.X, n.Y} {
		switch e := side.(type) {
		case *ast.BasicLit:
			if e.Kind == token.STRING && n.Op == token.ADD {
				return true
			}
		case *ast.BinaryExpr:
			if n.Op == token.ADD && isText(e) {
				return true
			}
		}
	}
	return false
}

func firstLine(text string) string {
	line, _, more := strings.Cut(text, "\n")
	if more {
		line += " …"
	}
	return line
}
