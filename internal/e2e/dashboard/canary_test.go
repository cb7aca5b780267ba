package dashboard

import "sync"

var binary = sync.OnceValues(func() (string, error) { return "", nil })
