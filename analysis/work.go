package analysis

import (
	"errors"
	"reflect"
	"slices"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/vm"
)

// Bounds on any condition's cost. Each turn of a loop costs turn plus the result's weight, as it may read the whole
// result. So a nested loop has at most 300 by 300 turns, a single one 9,000 values.
const (
	maxCondition = 4000        // bytes
	maxList      = 20_000      // members of all lists that a condition makes
	maxWork      = 100_000_000 // of one evaluation
	turn         = 1000
	made         = 8 // for each new byte or value: it takes memory until the end
)

// work is an evaluation's remaining budget, and each turn's cost.
type work struct{ left, each int }

var errTooMuch = errors.New("is too much work, for this result: loop over fewer values, or over less at once")

// runCondition evaluates a condition within seconds and some megabytes.
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
		"join", "repeat", "replace", "uniq", // the product of their arguments' sizes
		"toJSON", // indents: the square of the depth; functions has a replacement
	} {
		options = append(options, expr.DisableBuiltin(name))
	}
	return expr.Compile(condition, options...)
}

// spent is a function name that no condition can contain.
const spent = "work spent on"

// Visit charges each turn of a loop, and each made text or list.
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

// plain lists expr's functions of numbers or booleans: they make no text or list, and a condition may be such a call.
var plain = []string{
	"all", "any", "none", "one", "count", "len", "sum", "mean", "median", "abs", "ceil", "floor", "round", "int", "float",
	"indexOf", "lastIndexOf", "findIndex", "findLastIndex", "hasPrefix", "hasSuffix",
}

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

// weigh counts a value's values and bytes, up to most.
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
	default: // results of expr's functions: []string, []int, map[any][]any
		if r := reflect.ValueOf(v); r.Kind() == reflect.Slice || r.Kind() == reflect.Map {
			n += r.Len()
		}
	}
	return n
}
