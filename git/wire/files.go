package wire

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"sync"
)

// File is a file to read. Errors begin with its Purpose. If Name is "", there is no file.
type File struct{ Purpose, Name string }

// Parsed is the parsed content of files that may change. It is safe for concurrent use.
type Parsed[T any] struct {
	mu    sync.Mutex
	data  [][]byte // last read
	value T
	reads int // number of changes
}

// Read parses all files if one has changed. After an error, Last still returns the previous value.
func (p *Parsed[T]) Read(files []File, parse func(data [][]byte, previous T) (T, error)) (value T, err error) {
	data := make([][]byte, len(files))
	for i, f := range files {
		if f.Name == "" {
			continue
		}
		if data[i], err = os.ReadFile(f.Name); err != nil {
			return value, fmt.Errorf("%s: %w", f.Purpose, err)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reads > 0 && slices.EqualFunc(data, p.data, bytes.Equal) {
		return p.value, nil
	}
	value, err = parse(data, p.value)
	if err == nil {
		p.data, p.value = data, value
		p.reads++
	}
	return value, err
}

// Last returns the value in use, and how often the value changed.
func (p *Parsed[T]) Last() (value T, reads int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.value, p.reads
}
