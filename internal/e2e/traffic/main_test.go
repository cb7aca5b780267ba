package traffic

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
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		_ = parallel.Value.Set("8") // releases mostly wait
	}
	os.Exit(proxytest.Main(m))
}

// binary is the program under test, built once for all tests.
var binary = sync.OnceValues(testbin.Gitrollout)
