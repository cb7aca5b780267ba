package analysis_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/analysis"
)

func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func numbersBelow(n int) (numbers []any) {
	for i := range n {
		numbers = append(numbers, float64(i))
	}
	return numbers
}

// TestConditionsEnd checks that expensive conditions on expensive results take at most 20 s of CPU time and allocate at most 2 GB.
func TestConditionsEnd(t *testing.T) {
	numbers := numbersBelow(50_000)
	var nested any = 1.0
	for range 10_000 {
		nested = []any{nested}
	}
	for name, c := range map[string]struct {
		condition string
		result    any
	}{
		"a text that doubles":             {`len(reduce(1..60, #acc + #acc, "aaaaaaaa")) > 0`, 1.0},
		"a text that doubles by its name": {`let a = "aaaaaaaa"; ` + doubling(30) + ` len(z30) > 0`, 1.0},
		"a mapping that doubles":          {`len(toJSON(reduce(1..60, {"a": #acc, "b": #acc}, 1))) > 0`, 1.0},
		"a list that doubles":             {`len(reduce(1..60, concat(#acc, #acc), [1])) > 0`, 1.0},
		"loops in loops":                  {`let r = 1..9000; all(r, {all(r, {all(r, {true})})})`, 1.0},
		"loops over a long list":          {`all(result, {all(result, {true})})`, numbers},
		"looking for each":                {`all(result, {# in result})`, numbers},
		"long texts, many times":          {`len(map(1..9000, {result})) > 0`, strings.Repeat("x", 1<<20)},
		"texts of all":                    {`len(map(1..9000, {toJSON(result)})) > 0`, numbers},
		"parts, joined":                   {`join(map(1..9000, {"x"}), result) != ""`, strings.Repeat("x", 1<<20)},
		"letters, replaced":               {`replace(result, "x", result) != ""`, strings.Repeat("x", 1<<20)},
		"many times":                      {`repeat(result, 1000000) != ""`, strings.Repeat("x", 1<<20)},
		"each once":                       {`len(uniq(result)) > 0`, numbers},
		"brackets":                        {strings.Repeat("(", 1<<20) + "true", 1.0},
		"nested deep":                     {`toJSON(result) == "" || all(result, {len(#) == 1})`, nested},
		"texts beside each other":         {`len([` + strings.Repeat("toJSON(result), ", 230) + `1]) > 0`, nested},
		"parts beside each other":         {`len([` + strings.Repeat(`split(result, ""), `, 190) + `1]) > 0`, strings.Repeat("x", 1<<20)},
		"letters beside each other":       {`len([` + strings.Repeat(`upper(result), `, 250) + `1]) > 0`, strings.Repeat("x", 1<<20)},
		"many names":                      {strings.Repeat("result > 1 && ", 10_000) + "true", 1.0},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := cpuTime()
			_, _ = analysis.Holds(c.condition, c.result)
			runtime.ReadMemStats(&after)
			if took := cpuTime() - began; took > 20*time.Second {
				t.Errorf("it took %s of CPU", took)
			}
			if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 2000 {
				t.Errorf("it took %d MB", took)
			}
		})
	}
}

func doubling(n int) string {
	text := "let z1 = a + a; "
	for i := 2; i <= n; i++ {
		text += fmt.Sprintf("let z%d = z%d + z%d; ", i, i-1, i-1)
	}
	return text
}

// TestConditionsHaveRoom checks that conditions with sums, loops and texts of realistic size are within the limits.
func TestConditionsHaveRoom(t *testing.T) {
	numbers := numbersBelow(5000)
	rows := slices.Repeat([]any{map[string]any{"name": "web", "values": []any{1.0, 2.0, 3.0}}}, 150)
	for condition, result := range map[string]any{
		"all(result, # < 5000)": numbers, "sum(filter(result, # > 4998)) == 4999": numbers,
		"all(result, {all(.values, {# > 0})})":           rows,
		"result + 1 < 3 && result + result == 2":         1.0,
		`result + "%" == "5%"`:                           "5",
		"count(result, {.name == 'web'}) == len(result)": rows,
		"reduce(result, #acc + #, 0) == 12497500":        numbers,
		"any(map(result, {.values[0] + 1}), {# == 2})":   rows,
		"let r = result; asFloat(r) * 2 > 1":             "0.75",
	} {
		if is, err := analysis.Holds(condition, result); err != nil || !is {
			t.Errorf("%s is %t: %v", condition, is, err)
		}
	}
}
