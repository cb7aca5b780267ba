package analysis

import (
	"errors"
	"reflect"
	"slices"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/vm"
)

// What a condition may cost, whatever somebody writes and whatever a server answers. Each turn of a loop costs
// turn and as much as the result weighs, which it may look at as a whole. So a loop within a loop has 300 times 300
// turns at most, and one loop goes over up to 9,000 values.
const (
	maxCondition = 4000        // bytes
	maxList      = 20_000      // members of the lists that a condition makes, of all together
	maxWork      = 100_000_000 // of one evaluation
	turn         = 1000
	made         = 8 // for each letter or value that is made: it takes memory until the end
)

// work is what an evaluation has left to do.
type work struct{ left, each int }

var errTooMuch = errors.New("is too much work, for this result: loop over fewer values, or over less at once")

// runCondition evaluates a condition. It takes seconds at most, and some megabytes.
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
		"join", "repeat", "replace", "uniq", // the product of what they are given
		"toJSON", // indents: the square of how deep that is; functions has another one
	} {
		options = append(options, expr.DisableBuiltin(name))
	}
	return expr.Compile(condition, options...)
}

// spent is the name of a function that nobody can write.
const spent = "work spent on"

// Visit has each turn of a loop, and each text or list that is made, be paid for.
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

// plain are the functions of expr whose results are numbers, or true or false: a condition may be one of them.
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

// weigh counts the values and the letters of a value, up to a number.
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
	default: // what expr's own functions make: []string, []int, map[any][]any
		if r := reflect.ValueOf(v); r.Kind() == reflect.Slice || r.Kind() == reflect.Map {
			n += r.Len()
		}
	}
	return n
}
