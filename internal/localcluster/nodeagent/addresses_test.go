package nodeagent

import "testing"

func TestAddressPool(t *testing.T) {
	pool := newAddressPool()
	take := func(want string) {
		t.Helper()
		if got, err := pool.take(); err != nil || got != want {
			t.Fatalf("take() = %s, %v; want %s", got, err, want)
		}
	}
	pool.keep("10.244.0.2")
	take("10.244.0.1")
	take("10.244.0.3") // .2 is reserved
	pool.giveBack("10.244.0.1")
	take("10.244.0.4") // .1 is not used again yet
}

func TestAddressPoolWrapsAndRunsOut(t *testing.T) {
	pool := newAddressPool()
	seen := make(map[string]bool)
	for {
		ip, err := pool.take()
		if err != nil {
			break
		}
		if seen[ip] {
			t.Fatalf("%s was handed out twice", ip)
		}
		seen[ip] = true
	}
	if len(seen) < 65000 {
		t.Errorf("pool ran out after %d addresses", len(seen))
	}
	pool.giveBack("10.244.7.7")
	if got, err := pool.take(); err != nil || got != "10.244.7.7" {
		t.Errorf("take() = %s, %v; want the address that was given back", got, err)
	}
}
