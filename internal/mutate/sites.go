package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// mutant is one change of one file: text replaces the bytes from begin to end.
type mutant struct {
	file       string // relative to the module's root
	at         [2]int // line and column
	begin, end int
	text       string
	what       string // description, such as "< becomes <="
	node       ast.Node
	body       *ast.BlockStmt // of the enclosing function
	number     int            // number among the drawn mutants
	own        bool           // must be compiled separately
}

// apply returns the file's content with the change.
func (m *mutant) apply(content []byte) []byte {
	changed := append([]byte{}, content[:m.begin]...)
	return append(append(changed, m.text...), content[m.end:]...)
}

// opposites are the operators that replace each other.
var opposites = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.EQL: token.NEQ, token.NEQ: token.EQL, token.LAND: token.LOR, token.LOR: token.LAND,
	token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL,
}

// source is a file of the product with its possible mutants, ordered by position. The mutant of an outer
// expression comes before the mutants of inner expressions.
type source struct {
	name, path string // relative to the module's root, and the full path
	content    []byte
	set        *token.FileSet
	file       *ast.File
	mutants    []*mutant
}

// sourcesOf reads the Go files in a folder, except for tests.
func sourcesOf(root, folder string) (all []*source, err error) {
	files, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		found, err := read(set, root, file)
		if err != nil {
			return nil, err
		}
		all = append(all, found)
	}
	return all, nil
}

func read(set *token.FileSet, root, path string) (*source, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	parsed, err := parser.ParseFile(set, path, content, 0)
	if err != nil {
		return nil, err
	}
	name, err := filepath.Rel(root, path)
	if err != nil {
		return nil, err
	}
	c := collector{source: &source{name: name, path: path, content: content, set: set, file: parsed}}
	for _, decl := range parsed.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Body != nil {
			c.body = f.Body
			ast.Inspect(f.Body, c.visit)
		}
	}
	return c.source, nil
}

// offset returns a position's offset in the file.
func (s *source) offset(at token.Pos) int { return s.set.Position(at).Offset }

func (s *source) text(n ast.Node) string {
	return string(s.content[s.offset(n.Pos()):s.offset(n.End())])
}

// collector finds the mutants of one file.
type collector struct {
	*source
	body *ast.BlockStmt
}

func (c *collector) add(node ast.Node, begin, end token.Pos, text, what string) {
	at := c.set.Position(begin)
	c.mutants = append(c.mutants, &mutant{
		file: c.name, at: [2]int{at.Line, at.Column}, begin: at.Offset, end: c.offset(end),
		text: text, what: what, node: node, body: c.body,
	})
}

func (c *collector) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if other, ok := opposites[n.Op]; ok && !isText(n) {
			end := n.OpPos + token.Pos(len(n.Op.String()))
			c.add(n, n.OpPos, end, other.String(), n.Op.String()+" becomes "+other.String())
		}
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			c.add(n, n.OpPos, n.OpPos+1, "", "! goes from "+c.text(n))
		}
	case *ast.BasicLit:
		if v, err := strconv.Atoi(n.Value); err == nil && n.Kind == token.INT {
			c.add(n, n.Pos(), n.End(), strconv.Itoa(v+1), n.Value+" becomes "+strconv.Itoa(v+1))
		}
	case *ast.Ident:
		if other := map[string]string{"true": "false", "false": "true"}[n.Name]; other != "" {
			c.add(n, n.Pos(), n.End(), other, n.Name+" becomes "+other)
		}
	case *ast.BlockStmt:
		c.statements(n.List)
	case *ast.CaseClause:
		c.statements(n.Body)
	}
	return true
}

// statements adds mutants that omit a statement: a call whose results are unused, or an assignment to
// existing variables. For each if statement, it adds mutants whose condition is always true or always false.
func (c *collector) statements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt:
			c.add(s, s.Pos(), s.End(), "", "left out: "+firstLine(c.text(s)))
		case *ast.AssignStmt:
			if s.Tok != token.DEFINE {
				c.add(s, s.Pos(), s.End(), "", "left out: "+firstLine(c.text(s)))
			}
		case *ast.IfStmt:
			c.add(s, s.Cond.Pos(), s.Cond.End(), "("+c.text(s.Cond)+") || true", "always: if "+c.text(s.Cond))
			c.add(s, s.Cond.Pos(), s.Cond.End(), "("+c.text(s.Cond)+") && false", "never: if "+c.text(s.Cond))
		}
	}
}

// isText reports whether an expression is or adds a string literal. Such additions have no mutant, because strings
// cannot be subtracted.
func isText(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Kind == token.STRING
	case *ast.BinaryExpr:
		return e.Op == token.ADD && (isText(e.X) || isText(e.Y))
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
