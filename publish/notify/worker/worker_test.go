package worker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"text/template"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/publish/notify"
	"gitrollout.dev/gitrollout/publish/notify/worker"
	"gitrollout.dev/gitrollout/rollout"
)

// TestStories runs the cases in stories with synctest, so that pauses take no real time.
func TestStories(t *testing.T) {
	for name, story := range stories {
		t.Run(name, func(t *testing.T) { synctest.Test(t, story) })
	}
}

// stories are cases with one or more processes, with receivers, and with a record in Git.
var stories = map[string]func(t *testing.T){
	"each message is sent once": func(t *testing.T) {
		w, p, end := started(t, chat("a"), chat("b"))
		w.push(p, "shop", "cart")
		synctest.Wait()
		c := w.push(p, "shop")
		synctest.Wait()
		p.Notify(w.config, c.ID, nil)
		end(true)
		want := []string{"01/cart", "01/shop", "02/shop"}
		w.wantInbox(map[string][]string{"a": want, "b": want})
		w.wantTold(rollout.Cursor{Told: c.ID})
		_, again := w.process("two")
		again(true)
		if w.writes > 5 { // one write at the start, and two per commit: the claim and the cursors
			t.Errorf("%d writes for two commits", w.writes)
		}
	},
	"a commit without events writes nothing": func(t *testing.T) {
		w := newWorld(t, chat("a"))
		p, end := w.process("one")
		p.Notify(w.config, w.commit("shop").ID, nil)
		synctest.Wait()
		writes, reads := w.writes, w.reads
		for range 50 {
			c := w.commit() // a commit without events
			p.Notify(w.config, c.ID, c)
			synctest.Wait()
		}
		end(true)
		compare.CheckNamed(t, "writes and reads for nothing", [2]int{}, [2]int{w.writes - writes, w.reads - reads})
		w.wantInbox(map[string][]string{})
	},
	"two processes send each message once": func(t *testing.T) {
		w := newWorld(t, chat("a"))
		one, endOne := w.process("one")
		two, endTwo := w.process("two")
		one.Notify(w.config, "", nil)
		two.Notify(w.config, "", nil)
		synctest.Wait()
		var want []string
		for i := range 20 {
			c := w.commit("shop")
			want = append(want, fmt.Sprintf("%02d/shop", i+1))
			one.Notify(w.config, c.ID, c)
			two.Notify(w.config, c.ID, nil)
		}
		time.Sleep(5 * time.Minute)
		endOne(true)
		endTwo(true)
		w.wantInbox(map[string][]string{"a": want})
	},
	"a short process takes over only an old claim": func(t *testing.T) {
		w := newWorld(t, chat("a"))
		w.commit("shop")
		w.record = rollout.Notified{By: "dead", Since: time.Now(), Receivers: map[string]rollout.Cursor{"a": {Claimed: w.head()}}}
		moment := func(id string) {
			p, end := w.process(id)
			p.Notify(w.config, w.head(), nil)
			time.Sleep(5 * time.Second)
			end(false)
		}
		moment("one")
		w.wantInbox(map[string][]string{})
		time.Sleep(10 * time.Minute)
		moment("two")
		w.wantInbox(map[string][]string{"a": {"01/shop again"}})
	},
	"of very many events only the last are sent": func(t *testing.T) {
		w, p, end := started(t, chat("a"))
		var apps []string
		for i := range 300 {
			apps = append(apps, fmt.Sprintf("app%03d", i))
		}
		w.push(p, apps...)
		end(true)
		if got := w.inbox["a"]; len(got) != notify.MaxPending || got[0] != "01/app100" || len(w.reports) != 1 {
			t.Errorf("told %d, from %s; reported %q", len(got), got[0], w.reports)
		}
	},
	"a process without the newest commits does not reset the record": func(t *testing.T) {
		w := newWorld(t, chat("a"))
		old := w.commit("shop").ID
		one, endOne := w.process("one")
		one.Notify(w.config, old, nil)
		synctest.Wait()
		w.push(one, "shop")
		endOne(true)
		two, endTwo := w.process("two")
		two.Notify(w.config, old, nil)
		synctest.Wait()
		two.Notify(w.config, w.head(), nil)
		w.push(two, "shop")
		endTwo(true)
		w.wantInbox(map[string][]string{"a": {"02/shop", "03/shop"}})
		w.wantReports()
	},
	"a service that is away is reported once, and told later": func(t *testing.T) {
		w := newWorld(t, chat("a"), chat("b"))
		down := true
		w.answer = func(receiver string, _ notify.Message) (bool, time.Duration, error) {
			if receiver == "b" && down {
				return false, 0, errors.New("503")
			}
			return false, 0, nil
		}
		p, end := w.process("one")
		p.Notify(w.config, "", nil)
		for range 3 {
			w.push(p, "shop")
			time.Sleep(10 * time.Second)
		}
		want := []string{"01/shop", "02/shop", "03/shop"}
		w.wantInbox(map[string][]string{"a": want})
		w.wantReports("503")
		end(true) // another process takes over
		w.locked(func() { down = false })
		p, end = w.process("two")
		p.Notify(w.config, w.head(), nil)
		end(true)
		w.wantInbox(map[string][]string{"a": want, "b": want})
	},
	"a refused message is not sent again": func(t *testing.T) {
		w := newWorld(t, chat("a"))
		tries := 0
		w.answer = func(_ string, m notify.Message) (bool, time.Duration, error) {
			if strings.HasSuffix(m.ID, "01/shop") {
				tries++
				return true, 0, errors.New("404 no_service")
			}
			return false, 0, nil
		}
		p, end := w.process("one")
		p.Notify(w.config, "", nil)
		for range 2 {
			w.push(p, "shop")
		}
		end(true)
		w.wantInbox(map[string][]string{"a": {"02/shop"}})
		compare.CheckNamed(t, "tries", 1, tries)
		w.wantReports("404 no_service")
	},
	"a requested break is kept": func(t *testing.T) {
		w := newWorld(t, chat("a"))
		var at []time.Duration
		start := time.Now()
		w.answer = func(string, notify.Message) (bool, time.Duration, error) {
			if at = append(at, time.Since(start)); len(at) == 1 {
				return false, 42 * time.Second, errors.New("429")
			}
			return false, 0, nil
		}
		p, end := w.process("one")
		p.Notify(w.config, "", nil)
		w.push(p, "shop")
		time.Sleep(time.Minute)
		end(true)
		compare.CheckNamed(t, "asked at", []time.Duration{0, 42 * time.Second}, at)
	},
	"nothing is sent without a claim in Git": func(t *testing.T) {
		w, p, end := started(t, chat("a"))
		synctest.Wait()
		w.locked(func() { w.refuse = errors.New("connection refused") })
		w.push(p, "shop")
		time.Sleep(time.Second)
		w.wantInbox(map[string][]string{}) // nothing may be sent until the record has a claim
		w.locked(func() { w.refuse = nil })
		time.Sleep(time.Minute)
		end(true)
		w.wantInbox(map[string][]string{"a": {"01/shop"}})
	},
	"a new receiver is told from now on, and an old one is forgotten": func(t *testing.T) {
		w := newWorld(t, chat("a"))
		w.commit("shop")
		p, end := w.process("one")
		p.Notify(w.config, w.head(), nil) // no event of an earlier commit is sent
		synctest.Wait()
		w.config = &rollout.Config{Receivers: []rollout.Receiver{chat("b")}}
		p.Notify(w.config, w.head(), nil)
		w.push(p, "shop")
		end(true)
		w.wantInbox(map[string][]string{"b": {"02/shop"}})
		_, found := w.record.Receivers["a"]
		compare.CheckNamed(t, "a is still on record", false, found)
	},
	"a rewritten state branch is reported": func(t *testing.T) {
		w := newWorld(t, chat("a"))
		w.record.Receivers = map[string]rollout.Cursor{"a": {Told: "gone"}}
		w.commit("shop")
		p, end := w.process("one")
		p.Notify(w.config, w.head(), nil)
		synctest.Wait()
		w.push(p, "shop")
		end(true)
		w.wantInbox(map[string][]string{"a": {"02/shop"}})
		w.wantReports("")
	},
	// The log also has the number of messages that were sent between the outages.
	"two outages of a service or of the record are reported twice": func(t *testing.T) {
		w := newWorld(t, chat("a"))
		down, tries := false, 0
		w.answer = func(string, notify.Message) (bool, time.Duration, error) {
			if tries++; down {
				return false, 0, errors.New("503")
			}
			return false, 0, nil
		}
		p, end := w.process("one")
		p.Notify(w.config, "", nil)
		set := func(away bool, refuse error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			down, w.refuse = away, refuse
		}
		for _, away := range []bool{true, false, true, false} {
			set(away, nil)
			w.push(p, "shop", "cart")
			time.Sleep(20 * time.Minute)
			synctest.Wait()
		}
		if w.wantReports("", ""); tries > 60 {
			t.Errorf("%d tries", tries)
		}
		for _, refuse := range []error{errors.New("refused"), nil, errors.New("refused"), nil} {
			set(false, refuse)
			reads := w.reads
			w.push(p, "shop")
			time.Sleep(20 * time.Minute)
			synctest.Wait()
			if asked := w.reads - reads; asked > 20 {
				t.Errorf("%d tries to read the record in 20 minutes", asked)
			}
		}
		end(true)
		w.wantReports("", "", "notifications wait: refused", "")
		compare.CheckNamed(t, "the refusal is reported as it is", true, slices.Contains(w.reports, "notifications wait: refused"))
		compare.CheckNamed(t, "done", []string{"a: 4 sent", "a: 4 sent", "a: 2 sent", "a: 2 sent"}, w.done)
	},
	// In the log, messages that were refused permanently do not count as sent.
	"only the failed messages of a commit are sent again": func(t *testing.T) {
		w, p, end := started(t, chat("a"))
		synctest.Wait()
		w.answer = func(_ string, m notify.Message) (bool, time.Duration, error) {
			switch {
			case strings.HasSuffix(m.ID, "/b"):
				return true, 0, errors.New("404")
			case strings.HasSuffix(m.ID, "/c"):
				return false, 0, errors.New("503")
			}
			if w.record.By != "one" || w.record.Since.IsZero() || w.record.Receivers["a"].Claimed != w.line[0].ID {
				t.Errorf("while it is told the record is %+v", w.record)
			}
			return false, 0, nil
		}
		w.push(p, "a", "b", "c", "d")
		time.Sleep(2 * time.Second)
		end(true)
		if want := (rollout.Cursor{Told: "", App: "b"}); w.record.Receivers["a"] != want || w.record.By != "" || !w.record.Since.IsZero() {
			t.Errorf("the record is %+v, want %+v", w.record, want)
		}
		compare.CheckNamed(t, "done", []string{"a: 1 sent"}, w.done)
		w.locked(func() { w.answer = nil })
		next, end := w.process("two")
		next.Notify(w.config, w.head(), nil)
		end(true)
		w.wantInbox(map[string][]string{"a": {"01/a", "01/c", "01/d"}})
	},
	// The record is written if a receiver's cursor is more than 100 commits behind the head.
	"receivers without messages are recorded along with others": func(t *testing.T) {
		quiet := chat("quiet")
		quiet.Apps = []string{"none"}
		w, p, end := started(t, chat("a"), quiet)
		synctest.Wait()
		silent := func(n int) {
			for range n {
				w.push(p)
				synctest.Wait()
			}
		}
		writes := w.writes
		silent(100)
		compare.CheckNamed(t, "writes for 100 commits", 0, w.writes-writes)
		silent(1)
		compare.CheckNamed(t, "writes for 101 commits", writes+1, w.writes)
		compare.CheckNamed(t, "told", w.head(), w.record.Receivers["quiet"].Told)
		silent(1)
		c := w.push(p, "shop")
		end(true)
		compare.CheckNamed(t, "told", c.ID, w.record.Receivers["quiet"].Told)
	},
	"a failing template is reported, and the default text is sent": func(t *testing.T) {
		a := chat("a")
		a.Title = template.Must(template.New("t").Parse("{{index .Analyses 3}}"))
		w, p, end := started(t, a)
		w.push(p, "shop")
		end(true)
		w.wantInbox(map[string][]string{"a": {"01/shop"}})
		w.wantReports("template of notification a: ")
	},
	"another process's lease is respected until its end": func(t *testing.T) {
		w := newWorld(t, chat("a"))
		w.commit("shop")
		w.record = rollout.Notified{By: "dead", Receivers: map[string]rollout.Cursor{"a": {Claimed: w.head()}}}
		p, end := w.process("one")
		p.Notify(w.config, w.head(), nil)
		time.Sleep(20 * time.Second)
		w.mu.Lock()
		w.record.Receivers = map[string]rollout.Cursor{"a": {Claimed: w.line[0].ID, App: "0"}} // the other process still runs
		w.mu.Unlock()
		c := w.commit() // makes the process read the record again
		p.Notify(w.config, c.ID, c)
		time.Sleep(29 * time.Second)
		w.wantInbox(map[string][]string{})
		time.Sleep(2 * time.Second)
		w.wantInbox(map[string][]string{"a": {"01/shop again"}})
		end(true)
	},
	"a failed last write is reported": func(t *testing.T) {
		w, p, end := started(t, chat("a"))
		synctest.Wait()
		w.during = func() { w.refuse = errors.New("refused") }
		w.push(p, "shop")
		synctest.Wait()
		end(false)
		if n := len(w.reports); n == 0 || w.reports[n-1] != "the last notifications are not on record, and will be sent again: refused" {
			t.Errorf("reported %q", w.reports)
		}
	},
	"sent messages are recorded when the process ends, at the latest": func(t *testing.T) {
		w, p, end := started(t, chat("a"))
		synctest.Wait()
		w.during = func() { w.refuse = errors.New("refused") }
		c := w.push(p, "shop")
		synctest.Wait()
		w.locked(func() { w.refuse = nil })
		end(false)
		w.wantReports("")
		w.wantTold(rollout.Cursor{Told: c.ID})
	},
}

// TestKilled kills a process before or after it has claimed messages, and checks which messages the next process sends.
// No message may be lost, and possible repeats must be marked.
func TestKilled(t *testing.T) {
	for _, c := range []struct {
		name  string
		claim string // the last commit that the killed process has claimed
		want  []string
	}{
		{name: "before it claimed", want: []string{"02/shop", "03/shop"}},
		{name: "after it claimed the second commit", claim: "2", want: []string{"02/shop again", "03/shop"}},
		{name: "after it claimed the third commit", claim: "3", want: []string{"02/shop again", "03/shop again"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, chat("a"), rollout.Receiver{Name: "keyed", Service: "dedups"})
				w.commit("shop")
				cursor := rollout.Cursor{Told: w.head()}
				w.commit("shop")
				w.commit("shop")
				if c.claim != "" {
					cursor.Claimed = strings.Repeat("0", 39) + c.claim
					w.record.By = "dead"
				}
				w.record.Receivers = map[string]rollout.Cursor{"a": cursor, "keyed": cursor}
				p, end := w.process("next")
				p.Notify(w.config, w.head(), nil)
				synctest.Wait()
				if c.claim != "" {
					w.wantInbox(map[string][]string{}) // the process with the claim may still run
				}
				time.Sleep(31 * time.Second)
				end(true)
				w.wantInbox(map[string][]string{"a": c.want, "keyed": {"02/shop", "03/shop"}})
			})
		})
	}
}

// TestKilledAnywhere kills a process after each possible number of sent messages and writes, and then starts another
// process. All messages must arrive in order, and repeats must be marked.
func TestKilledAnywhere(t *testing.T) {
	for effects := range 12 {
		t.Run(fmt.Sprint(effects), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, chat("a"))
				left := effects
				dead := errors.New("killed")
				step := func() bool { left--; return left >= 0 }
				p, end := w.processWith("first", func(o *worker.Options) {
					o.Update = func(ctx context.Context, now time.Time, change func(*rollout.Notified) error) error {
						if !step() {
							return dead
						}
						return w.update(ctx, now, change)
					}
					o.Send = func(ctx context.Context, r rollout.Receiver, m notify.Message) (bool, time.Duration, error) {
						if !step() {
							return false, 0, dead
						}
						return w.send(ctx, r, m)
					}
				})
				p.Notify(w.config, "", nil)
				synctest.Wait()
				for range 3 {
					w.push(p, "shop")
					synctest.Wait()
				}
				left = -1 // from now on, the first process can neither write the record nor send messages
				end(false)
				if len(w.record.Receivers) == 0 {
					return // no message is due, because the first process has recorded no receiver yet
				}
				next, end := w.process("second")
				next.Notify(w.config, w.head(), nil)
				time.Sleep(time.Minute)
				end(true)
				var once []string
				for _, got := range w.inbox["a"] {
					id, again := strings.CutSuffix(got, " again")
					if slices.Contains(once, id) && !again {
						t.Errorf("%s arrived twice without saying so: %q", id, w.inbox["a"])
					}
					if !slices.Contains(once, id) {
						once = append(once, id)
					}
				}
				compare.CheckNamed(t, "lost", []string{"01/shop", "02/shop", "03/shop"}, once)
			})
		})
	}
}

// TestNobodyIsTold checks that Notify starts no round without receivers, except one to forget earlier receivers.
func TestNobodyIsTold(t *testing.T) {
	none, some := &rollout.Config{}, &rollout.Config{Receivers: []rollout.Receiver{chat("a")}}
	w := worker.New(worker.Options{})
	for i, c := range []struct {
		config *rollout.Config
		asked  int
	}{{none, 0}, {none, 0}, {some, 1}, {some, 2}, {none, 3}, {none, 3}} {
		w.Notify(c.config, "head", nil)
		compare.CheckNamed(t, fmt.Sprint("asked after call ", i), c.asked, w.Asked())
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	w.Flush(ended) // must not wait, because no receiver is configured
}

// TestTakenOverMeanwhile checks a process that has sent messages, but could not record them as sent. After a second process has taken over,
// the first process must never overwrite the second process's record, not even at shutdown.
func TestTakenOverMeanwhile(t *testing.T) {
	for name, ends := range map[string]bool{"it goes on": false, "it ends": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, chat("a"))
				cut := false // whether process "one" cannot reach the record
				one, endOne := w.processWith("one", func(o *worker.Options) {
					o.Update = func(ctx context.Context, now time.Time, change func(*rollout.Notified) error) error {
						is := false
						if w.locked(func() { is = cut }); is {
							return errors.New("no connection")
						}
						return w.update(ctx, now, change)
					}
				})
				one.Notify(w.config, "", nil)
				synctest.Wait()
				w.during = func() { cut = true }
				w.push(one, "shop")
				synctest.Wait()
				w.locked(func() { w.during = nil })
				two, endTwo := w.process("two")
				two.Notify(w.config, w.head(), nil)
				time.Sleep(40 * time.Second)
				c := w.push(two, "cart")
				endTwo(true)
				record := w.record.Receivers["a"]
				w.locked(func() { cut = false })
				if !ends {
					time.Sleep(30 * time.Minute)
				}
				endOne(false)
				compare.CheckNamed(t, "the record", []any{record, c.ID}, []any{w.record.Receivers["a"], record.Told})
				w.wantInbox(map[string][]string{"a": {"01/shop", "01/shop again", "02/cart"}})
			})
		})
	}
}
