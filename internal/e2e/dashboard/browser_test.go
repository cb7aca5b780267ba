package dashboard

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

var update = flag.Bool("update", false, "write the pictures of the documentation anew")

// browser is one Chromium for all tests of this package.
var browser = sync.OnceValues(func() (context.Context, error) {
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			program = found
			break
		}
	}
	if program == "" {
		return nil, fmt.Errorf("there is no Chromium for the tests of the dashboard; on Debian: apt-get install chromium")
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(program), chromedp.NoSandbox,
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("force-device-scale-factor", "1"), chromedp.Flag("hide-scrollbars", true))
	allocator, _ := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, stop := chromedp.NewContext(allocator)
	closeBrowser = stop
	return ctx, chromedp.Do(ctx)
})

var closeBrowser = func() {}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	closeBrowser()
	os.Exit(code)
}

type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	troubles []string
}

// newTab opens an empty tab of a desktop's size. Each error of the page, such as a violation of the content policy, fails the test.
func newTab(t *testing.T, actions ...chromedp.Action[chromedp.Void]) *tab {
	t.Helper()
	parent, err := browser()
	must(t, err)
	ctx, stop := chromedp.NewContext(parent)
	must(t, chromedp.Do(ctx))
	ctx, cancel := context.WithTimeout(ctx, 2*timeout)
	p := &tab{t: t, ctx: ctx}
	err = chromedp.Listen(ctx, func(event any) {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch e := event.(type) {
		case *log.EventEntryAdded:
			if e.Entry.Level == log.EntryLevelError || e.Entry.Source == log.EntrySourceSecurity {
				p.troubles = append(p.troubles, e.Entry.Text+" "+e.Entry.URL)
			}
		case *runtime.EventExceptionThrown:
			p.troubles = append(p.troubles, fmt.Sprint(e.ExceptionDetails.Text, e.ExceptionDetails.Exception))
		}
	})
	must(t, err)
	t.Cleanup(func() {
		cancel()
		stop()
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, text := range p.troubles {
			t.Errorf("the browser complains: %s", text)
		}
	})
	p.do(append([]chromedp.Action[chromedp.Void]{chromedp.EmulateViewport(1280, 860)}, actions...)...)
	return p
}

// expect removes the page's errors that contain a text, so that these errors do not fail the test. If no error contains the text, the test
// fails.
func (p *tab) expect(part string) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.troubles)
	p.troubles = slices.DeleteFunc(p.troubles, func(text string) bool { return strings.Contains(text, part) })
	if len(p.troubles) == n {
		p.t.Errorf("the browser does not complain about %s", part)
	}
}

func (p *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	must(p.t, chromedp.Do(p.ctx, actions...))
}

// click clicks on the elements that match the selectors, one after the other.
func (p *tab) click(selectors ...string) {
	p.t.Helper()
	for _, selector := range selectors {
		p.do(chromedp.Click(chromedp.CSS(selector)))
	}
}

// count returns the number of the page's elements that match a selector.
func (p *tab) count(selector string) int {
	p.t.Helper()
	return js[int](p, fmt.Sprintf("document.querySelectorAll(%q).length", selector))
}

// signIn waits for the sign-in button, and signs in with a token. Then the page reloads.
func (p *tab) signIn(token string) {
	p.t.Helper()
	p.await(`document.getElementById('signin-open')`)
	p.click("#signin-open")
	p.do(chromedp.SendKeys(chromedp.CSS("#token"), token+kb.Enter))
}

func scheme(name string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: name}, {Name: "prefers-reduced-motion", Value: "reduce"},
		}})
		return err
	})
}

func phone() chromedp.Action[chromedp.Void] {
	return chromedp.EmulateViewport(375, 740, chromedp.EmulateMobile, chromedp.EmulateTouch)
}

// slash presses the / key. As on a keyboard, one event has the key and the text. chromedp's KeyEvent sends two events, and the page could
// not prevent the input of the slash.
func slash() chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		for _, params := range []input.DispatchKeyEventParams{
			{Type: input.DispatchKeyEventTypeKeyDown, Key: "/", Code: "Slash", Text: "/"},
			{Type: input.DispatchKeyEventTypeKeyUp, Key: "/", Code: "Slash"},
		} {
			if _, err := cdp.Call(ctx, t, input.DispatchKeyEvent, params); err != nil {
				return err
			}
		}
		return nil
	})
}

// js evaluates a JavaScript expression in the page. If the result is a promise, js returns the promise's value.
func js[T any](p *tab, expression string) T {
	p.t.Helper()
	result, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%v of %.300s", err, expression)
	}
	return result
}

// timeout is far longer than each wait, so that no test fails on a busy machine.
const timeout = 5 * time.Minute

func (p *tab) await(expression string) {
	p.t.Helper()
	for deadline := time.Now().Add(timeout); ; time.Sleep(30 * time.Millisecond) {
		ok, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		if err == nil && ok {
			return
		}
		if time.Now().After(deadline) {
			text, _ := chromedp.Run(p.ctx, chromedp.Evaluate[string]("document.body.innerText"))
			p.t.Fatalf("not within %s: %s (%v); the page says:\n%.3000s", timeout, expression, err, text)
		}
	}
}

func (p *tab) text() string { p.t.Helper(); return js[string](p, "document.body.innerText") }

// axe checks the page with axe-core's rules for WCAG 2.2 A and AA, and for best practices.
func (p *tab) axe(what string) {
	p.t.Helper()
	source, err := os.ReadFile("testdata/axe.min.js")
	must(p.t, err)
	js[int](p, string(source)+";0")
	type violation struct {
		ID, Impact, Help string
		Nodes            []struct{ HTML, FailureSummary string }
	}
	var found struct {
		Violations []violation
		Passes     int
	}
	text := js[string](p,
		`axe.run(document, {resultTypes: ['violations']}).then((r) => JSON.stringify({violations: r.violations, passes: r.passes.length}))`)
	must(p.t, json.Unmarshal([]byte(text), &found))
	if found.Passes < 10 {
		p.t.Errorf("%s: axe has checked %d rules only", what, found.Passes)
	}
	p.t.Logf("%s: axe: %d rules pass, %d do not", what, found.Passes, len(found.Violations))
	for _, v := range found.Violations {
		for _, n := range v.Nodes[:min(3, len(v.Nodes))] {
			p.t.Errorf("%s: %s (%s): %s\n  %.300s\n  %.400s", what, v.ID, v.Impact, v.Help, n.HTML, n.FailureSummary)
		}
	}
}

// picture saves a screenshot in docs/pictures if the flag -update is set. Otherwise, picture only checks that the file exists.
func (p *tab) picture(name string) {
	p.t.Helper()
	png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	must(p.t, err)
	file := filepath.Join("..", "..", "..", "docs", "pictures", name+".png")
	if len(png) > 200<<10 {
		p.t.Errorf("%s has %d bytes", name, len(png))
	}
	if *update {
		must(p.t, os.MkdirAll(filepath.Dir(file), 0o755))
		must(p.t, os.WriteFile(file, png, 0o644))
		return
	}
	if _, err := os.Stat(file); err != nil {
		p.t.Errorf("%v; make it with: go test ./internal/e2e/dashboard -update", err)
	}
}
