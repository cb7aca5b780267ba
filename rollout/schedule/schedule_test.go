package schedule_test

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout/schedule"
)

func must(t testing.TB, expression, zone string) *schedule.Schedule {
	t.Helper()
	s, err := schedule.Parse(expression, zone)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func at(t testing.TB, text string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestNext(t *testing.T) {
	for name, tt := range map[string]struct {
		expression, zone, after string
		want                    string // times, separated by spaces
	}{
		"workdays":               {"0 9 * * 1-5", "", "2026-11-20T09:00:00Z", "2026-11-23T09:00:00Z 2026-11-24T09:00:00Z"},
		"a second before":        {"0 9 * * *", "", "2026-11-20T08:59:59.5Z", "2026-11-20T09:00:00Z"},
		"names":                  {"30 7 * JAN SUN", "", "2026-12-31T00:00:00Z", "2027-01-03T07:30:00Z"},
		"either day":             {"0 0 13 * FRI", "", "2026-11-12T00:00:00Z", "2026-11-13T00:00:00Z 2026-11-20T00:00:00Z 2026-11-27T00:00:00Z"},
		"zone":                   {"0 9 * * *", "Asia/Kolkata", "2026-01-01T00:00:00Z", "2026-01-01T03:30:00Z"},
		"spring, skipped":        {"30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z 2026-03-30T00:30:00Z"},
		"spring, just before":    {"30 2 * * *", "Europe/Berlin", "2026-03-29T00:59:59Z", "2026-03-29T01:00:00Z"},
		"spring, and at its end": {"30 2,3 * * *", "Europe/Berlin", "2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z 2026-03-29T01:30:00Z"},
		"spring, not skipped":    {"0 3 * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", "2026-03-29T01:00:00Z 2026-03-30T01:00:00Z"},
		"autumn, twice": {"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z",
			"2026-10-25T00:30:00Z 2026-10-25T01:30:00Z 2026-10-26T01:30:00Z"},
		"autumn, hourly": {"0 * * * *", "Europe/Berlin", "2026-10-24T23:30:00Z",
			"2026-10-25T00:00:00Z 2026-10-25T01:00:00Z 2026-10-25T02:00:00Z"},
		"spring, hourly":      {"0 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", "2026-03-29T01:00:00Z 2026-03-29T02:00:00Z"},
		"half an hour":        {"15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", "2026-10-03T15:30:00Z 2026-10-04T15:15:00Z"},
		"midnight is skipped": {"0 0 * * *", "America/Havana", "2026-03-07T12:00:00Z", "2026-03-08T05:00:00Z 2026-03-09T04:00:00Z"},
		"a day is skipped": {"0 9 * * *", "Pacific/Apia", "2011-12-29T12:00:00Z",
			"2011-12-29T19:00:00Z 2011-12-30T10:00:00Z 2011-12-30T19:00:00Z"},
		"a zone that moved": {"0 9 * * *", "Asia/Pyongyang", "2018-05-04T00:00:00Z", "2018-05-04T00:30:00Z 2018-05-05T00:00:00Z"},
		"no summer time since": {"0 9 1 7 *", "Europe/Istanbul", "2015-01-01T00:00:00Z",
			"2015-07-01T06:00:00Z 2016-07-01T06:00:00Z 2017-07-01T06:00:00Z"},
		"nor winter time":     {"0 9 1 1 *", "Europe/Istanbul", "2015-06-01T00:00:00Z", "2016-01-01T07:00:00Z 2017-01-01T06:00:00Z"},
		"leap day":            {"0 0 29 2 *", "", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z 2032-02-29T00:00:00Z"},
		"the far future":      {"0 0 29 2 *", "Europe/Berlin", "2056-07-25T22:49:41Z", "2060-02-28T23:00:00Z 2064-02-28T23:00:00Z"},
		"no leap day in 2100": {"0 0 29 2 *", "", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z"},
	} {
		s, from := must(t, tt.expression, tt.zone), at(t, tt.after)
		var got []string
		for range strings.Fields(tt.want) {
			from = s.Next(from)
			got = append(got, from.UTC().Format(time.RFC3339))
		}
		compare.CheckNamed(t, name, tt.want, strings.Join(got, " "))
	}
}

func TestParseRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		expression, zone, want string
	}{
		"nothing":        {"", "", "is missing"},
		"too few fields": {"0 9 * *", "", "expected exactly 5 fields"},
		"seconds":        {"0 0 9 * * *", "", "expected exactly 5 fields"},
		"out of range":   {"0 24 * * *", "", "above maximum"},
		"day 7":          {"0 9 * * 7", "", "above maximum"},
		"no day":         {"0 0 30 2 *", "", "names a day that does not exist"},
		"step 0":         {"*/0 * * * *", "", "is not a schedule"},
		"words":          {"every day at nine o'clock", "", "is not a schedule"},
		"interval":       {"@every 5m", "", "is a shorthand; write five cron fields"},
		"macro":          {"@daily", "", "is a shorthand; write five cron fields"},
		"zone within":    {"CRON_TZ=Europe/Berlin 0 9 * * *", "", "has a time zone, which belongs in timeZone"},
		"other prefix":   {"TZ=UTC 0 9 * * *", "", "has a time zone, which belongs in timeZone"},
		"prefix alone":   {"CRON_TZ=", "", "has a time zone"},
		"very long":      {strings.Repeat("1,", 300) + "1 * * * *", "", "more than 500"},
		"unknown zone":   {"0 9 * * *", "Europe/Bonn", `"Europe/Bonn" is not a time zone`},
		"machine's zone": {"0 9 * * *", "Local", `"Local" is not a time zone`},
		"distance":       {"0 9 * * *", "+02:00", "is not a time zone"},
		"path":           {"0 9 * * *", "../../etc/passwd", "is not a time zone"},
	} {
		if _, err := schedule.Parse(tt.expression, tt.zone); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
		if _, err := schedule.Zone(tt.zone); (err != nil) != (tt.zone != "") {
			t.Errorf("%s: the zone alone: %v", name, err)
		}
	}
}

// zones have no clock changes, or changes of an hour, half an hour or a whole day. Some zones change at midnight, or have changed their
// rules.
var zones = []string{
	"", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Havana", "Asia/Kolkata", "Africa/Casablanca",
	"Pacific/Apia", "Asia/Pyongyang", "Europe/Istanbul", "America/Sao_Paulo", "Africa/Cairo", "Antarctica/Troll",
}

// years are years in which some of the zones have special clock changes.
var years = []int{2011, 2015, 2016, 2018, 2024, 2026}

// names reports whether an expression matches a local time.
func names(expression string, wall time.Time) bool {
	f := strings.Fields(expression)
	in := func(field string, first, value int) bool {
		for _, part := range strings.Split(field, ",") {
			span, step, stepped := strings.Cut(part, "/")
			low, high := first, 99
			if span != "*" {
				from, to, ranged := strings.Cut(span, "-")
				low, _ = strconv.Atoi(from)
				if high = low; ranged {
					high, _ = strconv.Atoi(to)
				}
			}
			every := 1
			if stepped {
				every, _ = strconv.Atoi(step)
			}
			if value >= low && value <= high && (value-low)%every == 0 {
				return true
			}
		}
		return false
	}
	day, weekday := in(f[2], 1, wall.Day()), in(f[4], 0, int(wall.Weekday()))
	either := day && weekday
	if f[2] != "*" && f[4] != "*" {
		either = day || weekday
	}
	return in(f[0], 0, wall.Minute()) && in(f[1], 0, wall.Hour()) && in(f[3], 1, int(wall.Month())) && either
}

// begins is the definition of the minute in which a window begins. The local time of the minute matches the expression, or the clock has
// skipped a matching local time just before the minute.
func begins(expression string, zone *time.Location, minute time.Time) bool {
	wall := func(m time.Time) time.Time {
		_, distance := m.In(zone).Zone()
		return m.UTC().Add(time.Duration(distance) * time.Second)
	}
	now := wall(minute)
	for w := wall(minute.Add(-time.Minute)).Add(time.Minute); w.Before(now); w = w.Add(time.Minute) {
		if names(expression, w) {
			return true
		}
	}
	return names(expression, now)
}

func randomExpression(r *rand.Rand) string {
	pick := func(texts ...string) string { return texts[r.IntN(len(texts))] }
	number := func(low, high int) string { return strconv.Itoa(low + r.IntN(high-low+1)) }
	hour := pick("*", number(0, 3), number(0, 23), "1-3", "*/6", "0,2,22")
	return strings.Join([]string{
		pick(number(0, 59), "0", "30", "*/15", "59"), hour,
		pick("*", "*", number(1, 28), "1-7", "*/2"), pick("*", "*", number(1, 12), "3,10"), pick("*", "*", "0", "1-5", "6,0"),
	}, " ")
}

// TestWindowsAgreeWithTheDefinition compares At with the function begins, for random lists of windows, mostly around clock changes.
func TestWindowsAgreeWithTheDefinition(t *testing.T) {
	rounds := 150
	if testing.Short() {
		rounds = 60
	}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		zone := zones[r.IntN(len(zones))]
		location, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		from := time.Date(years[r.IntN(len(years))], time.January, 1+r.IntN(365), r.IntN(24), r.IntN(60), 0, 0, time.UTC)
		if _, change := from.In(location).ZoneBounds(); !change.IsZero() && r.IntN(4) > 0 {
			from = change.Add(-time.Duration(r.IntN(36*60)) * time.Minute).UTC().Truncate(time.Minute)
		}
		var windows []schedule.Window
		var texts []string
		for range 1 + r.IntN(3) {
			text := randomExpression(r)
			s, err := schedule.Parse(text, zone)
			if err != nil {
				continue
			}
			windows = append(windows, schedule.Window{Deny: r.IntN(2) == 0, Begins: s, Length: time.Duration(1+r.IntN(20*60)) * time.Minute})
			texts = append(texts, text)
		}
		checkWindows(t, seed, windows, texts, location, from)
	}
}

// span is the length of the period in which checkWindows checks minutes.
const span = 48 * time.Hour

func checkWindows(t *testing.T, seed int, windows []schedule.Window, texts []string, zone *time.Location, from time.Time) {
	t.Helper()
	var open []bool
	last := make([]time.Time, len(windows)) // the newest start of each window
	for m := from.Add(-20 * time.Hour); m.Before(from.Add(span)); m = m.Add(time.Minute) {
		denied, allows, allowed := false, false, false
		for i, w := range windows {
			if begins(texts[i], zone, m) {
				last[i] = m
			}
			covers := !last[i].IsZero() && m.Before(last[i].Add(w.Length))
			denied = denied || (w.Deny && covers)
			allows, allowed = allows || !w.Deny, allowed || (!w.Deny && covers)
		}
		if !m.Before(from) {
			open = append(open, !denied && (!allows || allowed))
		}
	}
	next := time.Time{} // when the windows open next; the loop goes back in time
	for i := len(open) - 1; i >= 0; i-- {
		m := from.Add(time.Duration(i) * time.Minute)
		if open[i] {
			next = m
		}
		if i%11 != 0 && i > 120 { // skip most minutes, because nearly all have the same result as the minute before
			continue
		}
		got := schedule.At(windows, m)
		switch {
		case got.Open != open[i]:
			t.Fatalf("seed %d: %v %v in %s: open at %s: %v, want %v", seed, texts, windows, zone, m, got.Open, open[i])
		case open[i] && !got.Until.IsZero():
			t.Fatalf("seed %d: open, and until %s", seed, got.Until)
		case !open[i] && !next.IsZero() && (!got.Exact || !got.Until.Equal(next)):
			t.Fatalf("seed %d: %v in %s: shut at %s: opens at %s %v, want %s", seed, texts, zone, m, got.Until.UTC(), got.Exact, next)
		case !open[i] && next.IsZero() && !got.Until.IsZero() && got.Until.Before(from.Add(span)) && got.Exact:
			t.Fatalf("seed %d: %v in %s: shut at %s: opens at %s, and does not", seed, texts, zone, m, got.Until.UTC())
		}
	}
}

func TestAt(t *testing.T) {
	berlin := func(expression string) *schedule.Schedule { return must(t, expression, "Europe/Berlin") }
	office := schedule.Window{Begins: berlin("0 9 * * 1-5"), Length: 8 * time.Hour}
	holidays := schedule.Window{Deny: true, Begins: berlin("0 0 24 12 *"), Length: 14 * 24 * time.Hour}
	never := schedule.Window{Deny: true, Begins: must(t, "* * * * *", ""), Length: 2 * time.Minute}
	daily := schedule.Window{Deny: true, Begins: must(t, "0 0 * * *", ""), Length: 24 * time.Hour}
	for name, tt := range map[string]struct {
		windows []schedule.Window
		at      string
		want    schedule.Answer
	}{
		"none":   {nil, "2026-11-21T07:00:00Z", schedule.Answer{Open: true, By: -1}},
		"inside": {[]schedule.Window{office}, "2026-11-20T15:59:59Z", schedule.Answer{Open: true, By: -1}},
		"its end": {[]schedule.Window{office}, "2026-11-20T16:00:00Z",
			schedule.Answer{By: -1, Until: at(t, "2026-11-23T08:00:00Z"), Exact: true}},
		"weekend": {[]schedule.Window{office}, "2026-11-21T07:00:00Z",
			schedule.Answer{By: -1, Until: at(t, "2026-11-23T08:00:00Z"), Exact: true}},
		"denied, not asked": {[]schedule.Window{holidays}, "2026-11-21T07:00:00Z", schedule.Answer{Open: true, By: -1}},
		"deny wins": {[]schedule.Window{office, holidays}, "2026-12-28T10:00:00Z",
			schedule.Answer{By: 1, Until: at(t, "2027-01-07T08:00:00Z"), Exact: true}},
		"denied every minute": {[]schedule.Window{never}, "2026-01-01T00:00:00Z",
			schedule.Answer{By: 0, Until: at(t, "2026-01-01T00:01:00Z").Add(1000 * time.Minute)}},
		"denied every day": {[]schedule.Window{daily}, "2026-01-01T12:00:00Z",
			schedule.Answer{By: 0, Until: at(t, "2026-01-02T00:00:00Z").AddDate(0, 0, 1000)}},
	} {
		compare.CheckNamed(t, name, tt.want, schedule.At(tt.windows, at(t, tt.at)))
	}
}

// FuzzParse checks Next and At for each expression that Parse accepts.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"0 9 * * 1-5", "*/7 1-3 29 2 *", "CRON_TZ=", "TZ=x 0 0 * * *", "? ? ? ? ?",
		"0-59/18446744073709551615 * * * *"} {
		f.Add(text, "Europe/Berlin", int64(1774742400), int64(480))
	}
	f.Fuzz(func(t *testing.T, expression, zone string, unix, minutes int64) {
		s, err := schedule.Parse(expression, zone)
		if err != nil {
			return
		}
		from := time.Unix(unix%4e9, 0) // years 1843 to 2096
		first := s.Next(from)
		if first.IsZero() {
			return
		}
		if !first.After(from) {
			t.Errorf("%q in %q: %s is not after %s", expression, zone, first, from)
		}
		if before := s.Next(first.Add(-time.Second)); !before.Equal(first) {
			t.Errorf("%q in %q: %s, and a second before it %s", expression, zone, first, before)
		}
		w := schedule.Window{Deny: unix%2 == 0, Begins: s, Length: time.Duration(1+max(minutes, -minutes)%(366*24*60)) * time.Minute}
		switch got := schedule.At([]schedule.Window{w}, from); {
		case got.Open:
		case got.Exact && (!got.Until.After(from) || !schedule.At([]schedule.Window{w}, got.Until).Open):
			t.Errorf("%q in %q, %v: at %s not open at %s", expression, zone, w, from, got.Until)
		case !got.Until.IsZero() && !got.Until.After(from):
			t.Errorf("%q in %q: search ended at %s, which is not after %s", expression, zone, got.Until, from)
		}
	})
}
