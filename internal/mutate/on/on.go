// Package on is compiled into a build with many mutants, and reads which mutant is enabled. internal/mutate (switch.go)
// inserts calls of this package's functions into copies of the product's files. No other code imports this package.
package on

import (
	"cmp"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
)

// Noting is the number that enables no mutant, but makes the program record executed mutants.
const Noting = -1

// These are names of files in the program's folder. Child processes use the same files, even with an empty
// environment or in another working directory.
const (
	Chosen = "mutant" // has the number of the enabled mutant
	Ran    = "ran"    // gets the numbers of executed mutants, one per line
)

var (
	beside = folder()
	chosen = read()
	noted  [1 << 17]atomic.Bool // by mutant number; fast, because a loop may execute a mutant millions of times
)

func folder() string {
	program, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return filepath.Dir(program)
}

func read() int {
	content, err := os.ReadFile(filepath.Join(beside, Chosen))
	if os.IsNotExist(err) {
		return 0
	}
	n, failed := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil || failed != nil {
		panic("which mutant is on cannot be read")
	}
	return n
}

// Is reports whether mutant n is enabled.
func Is(n int) bool {
	if chosen == Noting {
		note(n)
	}
	return chosen == n
}

// note records an executed mutant. It writes to the file Ran immediately, because the process may be killed.
func note(n int) {
	if noted[n].Load() || noted[n].Swap(true) {
		return
	}
	f, err := os.OpenFile(filepath.Join(beside, Ran), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := f.WriteString(strconv.Itoa(n) + "\n"); err != nil {
		panic(err)
	}
}

// Or returns the first value, or the other value if mutant n is enabled.
func Or[T any](n int, value, other T) T {
	if Is(n) {
		return other
	}
	return value
}

// Less returns a < b, or a <= b if mutant n is enabled.
func Less[T cmp.Ordered](n int, a, b T) bool {
	if Is(n) {
		return a <= b
	}
	return a < b
}

// Most returns a <= b, or a < b if mutant n is enabled.
func Most[T cmp.Ordered](n int, a, b T) bool {
	if Is(n) {
		return a < b
	}
	return a <= b
}

// More returns a > b, or a >= b if mutant n is enabled.
func More[T cmp.Ordered](n int, a, b T) bool { return Less(n, b, a) }

// Least returns a >= b, or a > b if mutant n is enabled.
func Least[T cmp.Ordered](n int, a, b T) bool { return Most(n, b, a) }

// number is a constraint for the numeric types.
type number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr | ~float32 | ~float64
}

// Sum returns a + b, or a - b if mutant n is enabled.
func Sum[T number](n int, a, b T) T {
	if Is(n) {
		return a - b
	}
	return a + b
}

// Difference returns a - b, or a + b if mutant n is enabled.
func Difference[T number](n int, a, b T) T {
	if Is(n) {
		return a + b
	}
	return a - b
}

// Product returns a * b, or a / b if mutant n is enabled.
func Product[T number](n int, a, b T) T {
	if Is(n) {
		return a / b
	}
	return a * b
}

// Quotient returns a / b, or a * b if mutant n is enabled.
func Quotient[T number](n int, a, b T) T {
	if Is(n) {
		return a * b
	}
	return a / b
}
