package doctor

import (
	"context"
	"net/http"
	"time"
)

// Pauses and windows use this machine's clock, pods' ages the cluster's.
const (
	noticeableSkew = 5 * time.Second
	harmfulSkew    = time.Minute
)

// Clock compares this machine's clock with a Date header, in whole seconds.
func Clock(
	ctx context.Context, e *Examination, check, whose string, client *http.Client, address string, now func() time.Time,
) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		e.Add(check, Unknown, "", "%v", err)
		return
	}
	before := now()
	response, err := client.Do(request)
	if err != nil {
		e.Add(check, Unknown, "", "%s has not answered: %v", whose, err)
		return
	}
	_ = response.Body.Close()
	middle := before.Add(now().Sub(before) / 2)
	at, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		e.Add(check, Unknown, "", "%s does not tell the time", whose)
		return
	}
	skew := middle.Sub(at.Add(500 * time.Millisecond)).Round(time.Second)
	const fix = "synchronize both clocks with NTP (timedatectl, chrony)"
	switch {
	case skew.Abs() >= harmfulSkew:
		e.Add(check, Problem, fix, "the clocks of this machine and of %s are %s apart", whose, skew.Abs())
	case skew.Abs() >= noticeableSkew:
		e.Add(check, Warning, fix, "the clocks of this machine and of %s are %s apart", whose, skew.Abs())
	default:
		e.Add(check, Healthy, "", "the clocks of this machine and of %s agree", whose)
	}
}
