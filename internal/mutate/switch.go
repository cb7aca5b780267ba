package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// wrap is text for insertion before and after the bytes from begin to end. With the flag `instead`, the text `before`
// replaces the bytes.
type wrap struct {
	begin, end    int
	before, after string
	instead       bool
}

// name is the import name of package "on" in copies of the product's files.
const name = "mutantOn"

// weave inserts all wraps into a file. If two wraps surround the same bytes, the text of the first wrap is outside.
func weave(content []byte, wraps []wrap) (woven []byte) {
	slices.SortStableFunc(wraps, func(x, y wrap) int { return cmp.Or(x.begin-y.begin, y.end-x.end) })
	opening, closing, instead := map[int]string{}, map[int]string{}, map[int]wrap{}
	for _, w := range wraps {
		if w.instead {
			instead[w.begin] = w
			continue
		}
		opening[w.begin] += w.before
		closing[w.end] = w.after + closing[w.end]
	}
	for at := 0; at <= len(content); {
		woven = append(append(woven, closing[at]...), opening[at]...)
		if w, is := instead[at]; is {
			woven, at = append(woven, w.before...), w.end
			continue
		}
		if at < len(content) {
			woven = append(woven, content[at])
		}
		at++
	}
	return woven
}

// woven returns the file with the given mutants behind switches. A mutant that must be compiled separately gets only a
// call that records its execution.
func (s *source) woven(path string, mutants []*mutant, info *types.Info) []byte {
	clause := s.offset(s.file.Name.End())
	wraps := []wrap{{begin: clause, end: clause, before: fmt.Sprintf("; import %s %q", name, path)}}
	uses := false
	for _, m := range s.mutants { // in order: outer mutants first
		if !slices.Contains(mutants, m) {
			continue
		}
		uses = true
		if m.own {
			begin := s.offset(m.body.Lbrace) + 1
			wraps = append(wraps, wrap{begin: begin, end: begin, before: fmt.Sprintf("%s.Is(%d);", name, m.number)})
			continue
		}
		wraps = append(wraps, s.switched(m, info)...)
	}
	if !uses {
		return s.content
	}
	return weave(s.content, wraps)
}

// switched returns wraps that put a mutant behind a switch: the code has the mutant's effect if the mutant is enabled, and otherwise the
// original effect. No expression is evaluated twice. If the resulting code does not compile, the mutant is built separately.
func (s *source) switched(m *mutant, info *types.Info) []wrap {
	around := func(n ast.Node, before, after string) wrap {
		return wrap{begin: s.offset(n.Pos()), end: s.offset(n.End()), before: before, after: after}
	}
	is := fmt.Sprintf("%s.Is(%d)", name, m.number)
	call := func(function string) string { return fmt.Sprintf("%s.%s(%d, ", name, function, m.number) }
	switch n := m.node.(type) {
	case *ast.IfStmt:
		if strings.HasSuffix(m.text, "true") {
			return []wrap{around(n.Cond, "((", ") || "+is+")")}
		}
		return []wrap{around(n.Cond, "((", ") && !"+is+")")}
	case ast.Stmt:
		return []wrap{around(n, "if !"+is+" { ", " }")}
	case *ast.UnaryExpr: // only !x: there are no mutants of -x
		return []wrap{around(n, "((", ") == "+is+")"), {begin: m.begin, end: m.end, instead: true}}
	case *ast.BasicLit:
		of := s.typeOf(n, info)
		return []wrap{around(n, call("Or")+of+"(", "), "+of+"("+m.text+"))")}
	case *ast.BinaryExpr:
		switch n.Op {
		case token.EQL, token.NEQ:
			return []wrap{around(n, "((", ") != "+is+")")}
		case token.LAND, token.LOR: // a || b is !(!a && !b)
			return []wrap{around(n, "((", ") != "+is+")"), around(n.X, "((", ") != "+is+")"), around(n.Y, "((", ") != "+is+")")}
		}
		before := call(functions[n.Op])
		if info.Types[n.X].Value != nil && info.Types[n.Y].Value != nil {
			before = strings.Replace(before, "(", "["+s.typeOf(n, info)+"](", 1)
		}
		return []wrap{around(n, before, ")"), {begin: m.begin, end: m.end, before: ",", instead: true}}
	}
	return []wrap{around(m.node, "(", " != "+is+")")} // the identifier true or false
}

// functions maps operators to functions of package "on".
var functions = map[token.Token]string{
	token.LSS: "Less", token.LEQ: "Most", token.GTR: "More", token.GEQ: "Least",
	token.ADD: "Sum", token.SUB: "Difference", token.MUL: "Product", token.QUO: "Quotient",
}

// typeOf returns the name of an expression's type. If the file does not import the type's package, the name is invalid,
// so the mutant is built separately.
func (s *source) typeOf(e ast.Expr, info *types.Info) string {
	return types.TypeString(types.Default(info.TypeOf(e)), func(p *types.Package) string {
		for _, spec := range s.file.Imports {
			switch path, _ := strconv.Unquote(spec.Path.Value); {
			case path == p.Path() && spec.Name != nil:
				return spec.Name.Name
			case path == p.Path():
				return p.Name()
			}
		}
		if p.Path() == filepath.Dir(s.name) {
			return ""
		}
		return "unknown_" + p.Name()
	})
}

// reckoned reports whether a node is part of a constant expression that the compiler evaluates with
// arbitrary precision, such as 3/2 as a float. A function call in the expression would give another value.
func (s *source) reckoned(node ast.Node, info *types.Info) (is bool) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		if n == nil || node.Pos() < n.Pos() || n.End() < node.End() {
			return false
		}
		if b, binary := n.(*ast.BinaryExpr); binary && info.Types[b].Value != nil {
			basic, known := info.TypeOf(b).Underlying().(*types.Basic)
			is = is || b.Op == token.QUO || known && basic.Info()&types.IsFloat != 0
		}
		return true
	})
	return is
}
