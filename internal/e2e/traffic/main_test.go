package traffic

import (
	"flag"
	"os"
	"sync"
	"testing"

	"gitrollout.dev/gitrollout/internal/proxytest"
	"gitrollout.dev/gitrollout/internal/testbin"
	"gitrollout.dev/gitrollout/internal/tier"
)

func TestMain(m *testing.M) {
	flag.Parse()
	tier.Select("TestCanary", "TestBlueGreen", "TestMeasured", "TestWeights")
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		_ = parallel.Value.Set("4") // the tests share one Traefik, which reads the whole cluster
	}
	os.Exit(proxytest.Main(m))
}

// binary is the program under test, built once for all tests.
var binary = sync.OnceValues(testbin.Gitrollout)
