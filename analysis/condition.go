package analysis

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/expr-lang/expr"

	"gitrollout.dev/gitrollout/rollout"
)

type environment struct {
	Result any `expr:"result"`
}

func checkCondition(condition string) error {
	if condition == "" {
		return nil
	}
	if arg := placeholder.FindString(condition); arg != "" {
		return fmt.Errorf("must not use %s: its value comes from a Secret, and conditions are stored in Git", arg)
	}
	if found := elapsed.FindString(condition); found != "" {
		return fmt.Errorf("must not use %s: only fields of a provider may use it", found)
	}
	if _, err := compileCondition(condition, &work{}); err != nil {
		return fmt.Errorf("is not a condition: %s", firstLine(err))
	}
	return nil
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// Judge applies a metric's conditions. A negative number of samples means that the number is unknown.
func Judge(m Metric, before Progress, result any, samples int, at time.Time) Measurement {
	got := Measurement{At: at.UTC(), Value: short(result)}
	if m.StartWhen != "" && before.Count == 0 {
		begun, err := holds(m.StartWhen, result)
		if err != nil || !begun {
			got.Phase, got.Message = Pending, "waits for startWhen: "+m.StartWhen
			return got
		}
	}
	few := samples >= 0 && samples < m.MinSamples
	var err error
	switch phase, ok := withoutData[m.OnNoData]; {
	case ok && (few || isEmpty(result)):
		got.Phase, got.Message = phase, "no data"
	case few:
		got.Phase, got.Message = Pending, fmt.Sprintf("%d of %d samples", samples, m.MinSamples)
	default:
		if got.Phase, err = evaluate(m, result); err != nil {
			got.Phase, got.Message = Errored, err.Error()
		}
	}
	return got
}

var withoutData = map[NoData]Phase{
	rollout.NoDataWait: Pending, rollout.NoDataPass: Successful, rollout.NoDataFail: Failed,
}

// evaluate checks failureCondition first, as Argo Rollouts does. If only one condition is set, a result that does not
// meet this condition gets the opposite verdict. If no condition is set, all results are successful.
func evaluate(m Metric, result any) (Phase, error) {
	failed, succeeded := false, false
	var err error
	if m.FailureCondition != "" {
		if failed, err = holds(m.FailureCondition, result); err != nil {
			return "", fmt.Errorf("failureCondition: %w", err)
		}
	}
	if m.SuccessCondition != "" {
		if succeeded, err = holds(m.SuccessCondition, result); err != nil {
			return "", fmt.Errorf("successCondition: %w", err)
		}
	}
	switch {
	case m.FailureCondition == "" && m.SuccessCondition == "":
		return Successful, nil
	case failed, m.FailureCondition == "" && !succeeded:
		return Failed, nil
	case succeeded, m.SuccessCondition == "":
		return Successful, nil
	default:
		return Inconclusive, nil
	}
}

func holds(condition string, result any) (bool, error) {
	out, err := runCondition(condition, result)
	if err != nil {
		return false, fmt.Errorf("%s: %s", condition, firstLine(err))
	}
	is, ok := out.(bool)
	if !ok {
		return false, fmt.Errorf("%s is %T, not true or false", condition, out)
	}
	return is, nil
}

// functions returns the functions of Argo Rollouts' conditions (utils/evaluate).
func functions() []expr.Option {
	one := func(name string, f func(any) (any, error)) expr.Option {
		return expr.Function(name, func(args ...any) (any, error) {
			if len(args) != 1 {
				return nil, fmt.Errorf("%s takes one argument, not %d", name, len(args))
			}
			return f(args[0])
		})
	}
	return []expr.Option{
		one("asInt", func(v any) (any, error) { f, err := number(v); return int64(f), err }),
		one("asFloat", func(v any) (any, error) { f, err := number(v); return f, err }),
		one("isNaN", func(v any) (any, error) { f, err := number(v); return err == nil && math.IsNaN(f), nil }),
		one("isInf", func(v any) (any, error) { f, err := number(v); return err == nil && math.IsInf(f, 0), nil }),
		one("toJSON", func(v any) (any, error) { text, err := json.Marshal(v); return string(text), err }),
		one("isNil", func(v any) (any, error) { return v == nil, nil }),
		expr.Function("default", func(args ...any) (any, error) {
			if len(args) != 2 {
				return nil, fmt.Errorf("default takes two arguments, not %d", len(args))
			}
			if args[0] == nil {
				return args[1], nil
			}
			return args[0], nil
		}),
	}
}

func number(v any) (float64, error) {
	switch n := reflect.ValueOf(v); {
	case n.CanFloat():
		return n.Float(), nil
	case n.CanInt():
		return float64(n.Int()), nil
	case n.CanUint():
		return float64(n.Uint()), nil
	case n.Kind() == reflect.String:
		if f, err := strconv.ParseFloat(n.String(), 64); err == nil {
			return f, nil
		}
		return 0, fmt.Errorf("%q is not a number", v)
	}
	return 0, fmt.Errorf("%v is not a number", v)
}

func isEmpty(result any) bool {
	switch r := result.(type) {
	case nil:
		return true
	case []any:
		return !slices.ContainsFunc(r, func(v any) bool { return !isEmpty(v) })
	case float64:
		return math.IsNaN(r)
	case string:
		return r == ""
	default:
		return false
	}
}

const maxValue = 120

func short(result any) string {
	var text string
	switch r := result.(type) {
	case nil:
		return ""
	case float64:
		text = strconv.FormatFloat(r, 'g', 4, 64)
	case []any:
		text = "[" + strings.Join(rollout.Mapped(r[:min(len(r), maxValue)], short), " ") + "]"
	case string:
		text = r
	default:
		raw, err := json.Marshal(result)
		if err != nil {
			return fmt.Sprintf("%T", result)
		}
		text = string(raw)
	}
	return rollout.Cut(text, maxValue)
}
