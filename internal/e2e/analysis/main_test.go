package analysis

import (
	"flag"
	"os"
	"sync"
	"testing"

	"gitrollout.dev/gitrollout/internal/proxytest"
	"gitrollout.dev/gitrollout/internal/testbin"
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(proxytest.Main(m))
}

// binary is the program under test, built once for all tests.
var binary = sync.OnceValues(testbin.Gitrollout)
