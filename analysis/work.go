package analysis

import (
	"errors"
	"reflect"
	"slices"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/vm"
)

// These limits bound a condition's cost. An iteration costs the constant turn plus the metric result's size. maxWork
// allows 300 × 300 iterations of nested loops, or one loop over 9,000 values.
const (
	maxCondition = 4000        // bytes
	maxList      = 20_000      // members of all lists that a condition creates
	maxWork      = 100_000_000 // budget of an evaluation
	turn         = 1000
	made         = 8 // cost of a created byte or value, which stays in memory
)

type work struct{ left, each int }

var errTooMuch = errors.New("needs too many operations for this result: loop over fewer or smaller values")

func runCondition(condition string, result any) (any, error) {
	w := &work{left: maxWork, each: turn}
	w.each += weigh(result, maxWork)
	program, err := compileCondition(condition, w)
	if err != nil {
		return nil, err
	}
	machine := vm.VM{MemoryBudget: maxList}
	return machine.Run(program, environment{Result: result})
}

func compileCondition(condition string, w *work) (*vm.Program, error) {
	if len(condition) > maxCondition {
		return nil, errors.New("is longer than 4000 bytes")
	}
	options := append(functions(), expr.Env(environment{}), expr.AsBool(), expr.Patch(w),
		expr.Function(spent, func(args ...any) (any, error) { return args[0], w.spend(args[0]) }))
	for _, name := range []string{
		"join", "repeat", "replace", "uniq", // the result's size is the product of arguments' sizes
		"toJSON", // the indentation grows with the depth squared; functions() has a replacement
	} {
		options = append(options, expr.DisableBuiltin(name))
	}
	return expr.Compile(condition, options...)
}

// spent names the function that charges the budget. Because the name has spaces, no condition can call the function.
const spent = "work spent on"

// Visit adds calls that charge for iterations and for created texts and lists.
func (w *work) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.PredicateNode:
		n.Node = paid(n.Node)
	case *ast.BuiltinNode:
		if !slices.Contains(plain, n.Name) {
			*node = paid(n)
		}
	case *ast.CallNode:
		*node = paid(n)
	case *ast.BinaryNode:
		if n.Operator == "+" {
			*node = paid(n)
		}
	}
}

var plain = []string{
	"all", "any", "none", "one", "count", "len", "sum", "mean", "median", "abs", "ceil", "floor", "round", "int", "float",
	"indexOf", "lastIndexOf", "findIndex", "findLastIndex", "hasPrefix", "hasSuffix"}

func paid(node ast.Node) ast.Node {
	call := &ast.CallNode{Callee: &ast.IdentifierNode{Value: spent}, Arguments: []ast.Node{node}}
	call.SetLocation(node.Location())
	return call
}

func (w *work) spend(on any) error {
	w.left -= w.each
	if w.left -= made * weigh(on, w.left/made+1); w.left < 0 {
		return errTooMuch
	}
	return nil
}

func weigh(v any, most int) int {
	n := 1
	switch v := v.(type) {
	case string:
		return n + len(v)
	case []any:
		for _, e := range v {
			if n > most {
				break
			}
			n += weigh(e, most-n)
		}
	case map[string]any:
		for key, e := range v {
			if n > most {
				break
			}
			n += len(key) + weigh(e, most-n)
		}
	default: // such as []string, []int, map[any][]any
		if r := reflect.ValueOf(v); r.Kind() == reflect.Slice || r.Kind() == reflect.Map {
			n += r.Len()
		}
	}
	return n
}
