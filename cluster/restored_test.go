package cluster_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"gitrollout.dev/gitrollout/internal/testcluster"
	"gitrollout.dev/gitrollout/internal/tier"
)

// TestEtcdIsRestored restores the control plane from a backup while the client runs. The backup is older than the state in the client's
// watch caches. The client must reapply objects that are missing or older in the backup.
func TestEtcdIsRestored(t *testing.T) {
	tier.All(t)
	dir := filepath.Join(t.TempDir(), "state")
	var address atomic.Value
	launch := func() (c *testcluster.Cluster, stop func()) {
		t.Helper()
		c, stop, err := testcluster.Launch("--dir", dir)
		must(t, err)
		at, err := url.Parse(c.Config.Host)
		must(t, err)
		address.Store(at.Host)
		return c, stop
	}
	c, stop := launch()
	w := &world{t: t, cluster: c, ns: "default"}
	same := rest.CopyConfig(c.Config) // the client uses the same address for all three servers
	var open sync.Map
	same.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address.Load().(string))
		if err == nil {
			open.Store(conn, true)
		}
		return conn, err
	}
	kill := func() { // like a killed process, the server sends no last response, and its port refuses connections
		address.Store("127.0.0.1:1")
		open.Range(func(conn, _ any) bool { _ = conn.(net.Conn).Close(); return true })
		stop()
	}
	w.connect(same)
	config := func(name, text string) string { return coreManifest("ConfigMap", name, "data: {text: "+text+"}") }
	w.apply("shop", config("old", "one"))
	kill()
	must(t, os.CopyFS(dir+".backup", os.DirFS(dir)))

	_, stop = launch()
	newest := documents(config("old", "two"), config("new", "one"))
	w.until("the newest content is applied", func() (bool, string) {
		_, err := w.Apply(t.Context(), "shop", w.objects(newest))
		return err == nil, fmt.Sprint(err)
	})
	for i := range 500 { // raise the resource versions above the first resource versions of the restored server
		w.apply("busy", config("busy", fmt.Sprint("t", i)))
	}
	w.wantWrites(0, "the same objects again", func() { w.apply("shop", newest) })
	kill()
	must(t, os.RemoveAll(dir))
	must(t, os.Rename(dir+".backup", dir))

	c, stop = launch()
	t.Cleanup(stop)
	maps := c.Kube.CoreV1().ConfigMaps("default")
	w.until("the newest content is applied again", func() (bool, string) {
		_, err := w.Apply(t.Context(), "shop", w.objects(newest))
		old, oldErr := maps.Get(context.Background(), "old", metav1.GetOptions{})
		_, newErr := maps.Get(context.Background(), "new", metav1.GetOptions{})
		return oldErr == nil && newErr == nil && old.Data["text"] == "two", fmt.Sprint(err, oldErr, newErr, old.Data)
	})
}
