package rollout

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Limits bound memory and time for rendering an app. An app beyond a limit is held. Zero: the default.
type Limits struct {
	Memory     Bytes         `json:"memory" default:"512Mi"`
	RenderTime time.Duration `json:"renderTime" default:"30s" min:"1" fix:"write 30s, 1m or the like"`
}

const (
	defaultMemory     Bytes = 512 << 20
	defaultRenderTime       = 30 * time.Second
	leastMemory       Bytes = 128 << 20 // an app with one object needs under 64 MiB
)

// OrDefault sets zero fields to defaults.
func (l Limits) OrDefault() Limits {
	return Limits{Memory: cmp.Or(l.Memory, defaultMemory), RenderTime: cmp.Or(l.RenderTime, defaultRenderTime)}
}

// Bytes is a size such as "512Mi".
type Bytes int64

// ReadValue reads "512Mi", "1Gi" or the like.
func (b *Bytes) ReadValue(raw any) error {
	text, _ := raw.(string)
	for unit, size := range map[string]Bytes{"Mi": 1 << 20, "Gi": 1 << 30} {
		digits, has := strings.CutSuffix(text, unit)
		n, err := strconv.ParseInt(digits, 10, 20)
		if !has || err != nil {
			continue
		}
		if *b = Bytes(n) * size; *b < leastMemory {
			return &InvalidError{Msg: fmt.Sprintf("%s is less than %s", text, leastMemory), Fix: "give more"}
		}
		return nil
	}
	return &InvalidError{Msg: Describe(raw) + " is not a size", Fix: "write 512Mi, 1Gi or the like"}
}

// Shape returns the JSON Schema.
func (Bytes) Shape() map[string]any { return pattern(`^[0-9]+(Mi|Gi)$`) }

func (b Bytes) String() string {
	if b%(1<<30) == 0 {
		return fmt.Sprintf("%dGi", b>>30)
	}
	return fmt.Sprintf("%dMi", b>>20)
}
