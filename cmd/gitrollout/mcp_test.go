package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/rollout"
)

// agentWorld is a repository on a real Git server, and its working copy. In the cluster `prod`, the app `shop` is paused at step 2 of 2,
// and the app `cart` has no record. The app `till` is in the cluster `other`.
type agentWorld struct {
	*testing.T
	repo *gittest.Repo
	url  string
}

func newAgentWorld(t *testing.T) *agentWorld {
	t.Helper()
	t.Parallel()
	w := &agentWorld{t, gittest.New(t), ""}
	w.url = w.repo.HTTP(gittest.HTTPOptions{}).URL
	files := map[string]string{
		rollout.FleetPath:           "apiVersion: gitrollout.dev/v1alpha1\nkind: Fleet\nstages:\n- {name: prod, clusters: [prod]}\n",
		rollout.ConfigPath("prod"):  configOf("shop", "- path: apps/shop", "- path: apps/cart"),
		rollout.ConfigPath("other"): configOf("shop", "- path: apps/till"),
	}
	for _, app := range []string{"shop", "cart", "till"} {
		for name, content := range version("v1", halfThenGate) {
			files["apps/"+app+"/"+name] = strings.ReplaceAll(content, "APP", app)
		}
	}
	v1 := w.repo.CommitFiles("v1", files)
	h1 := w.hash("shop")
	manifest := strings.ReplaceAll(version("v2", "")["app.yaml"], "APP", "shop")
	v2 := w.repo.CommitFiles("v2", map[string]string{"apps/shop/app.yaml": manifest})
	h2, day := w.hash("shop"), time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	workload := rollout.Workload{Namespace: "shop", Name: "shop"}
	made := func(commit string, hash rollout.Hash) *rollout.Release {
		return &rollout.Release{Commit: commit, Hash: hash, Author: "Ann <ann@example.com>", Subject: "news", Since: day,
			Templates: map[rollout.Workload]rollout.Hash{workload: hash}}
	}
	s := rollout.State{App: "shop", Path: "apps/shop", Serial: 1, Phase: rollout.Paused, Source: v2, Stable: made(v1, h1),
		Release:  made(v2, h2),
		Progress: []rollout.Progress{{Workload: workload, Step: 1, Of: 2, Name: "pause", Weight: 50, Plan: "0", Entered: day}}}
	data := encoded(t, s)
	w.repo.FastImport(fmt.Sprintf("commit refs/heads/gitrollout/state/prod\ncommitter a <a@b> 1000000000 +0000\ndata 5\nstate\n"+
		"M 644 inline %s\ndata %d\n%s\n\n", rollout.StatePath("shop"), len(data), data))
	return w
}

// hash returns the release hash that validate prints for an app in the working copy.
func (w *agentWorld) hash(app string) rollout.Hash {
	w.Helper()
	var all struct {
		Clusters []struct {
			Apps []struct {
				App     string
				Release rollout.Hash
			}
		}
	}
	out, _ := w.program("validate", "-o", "json")
	must(w, json.Unmarshal([]byte(out), &all))
	for _, cluster := range all.Clusters {
		for _, a := range cluster.Apps {
			if a.App == app {
				return a.Release
			}
		}
	}
	w.Fatalf("no release of %s in %s", app, out)
	return ""
}

// command returns a gitrollout command that runs in the working copy, as an agent and without a cluster. TestMain puts the program into
// PATH.
func (w *agentWorld) command(args ...string) *exec.Cmd {
	cmd := exec.Command("gitrollout", args...)
	cmd.Dir = w.repo.Work
	cmd.Env = append(os.Environ(), "KUBECONFIG=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=agent[bot]", "GIT_AUTHOR_EMAIL=agent@example.com")
	return cmd
}

// program runs a command, and returns its standard output and standard error. It ignores the exit code.
func (w *agentWorld) program(args ...string) (string, string) {
	w.Helper()
	var out, err bytes.Buffer
	cmd := w.command(args...)
	cmd.Stdout, cmd.Stderr = &out, &err
	_ = cmd.Run()
	return out.String(), err.String()
}

// connect starts `gitrollout mcp`, and connects the SDK's client to the program's standard input and output.
func (w *agentWorld) connect() *mcp.ClientSession {
	w.Helper()
	return connectTo(w.T, &mcp.CommandTransport{Command: w.command("mcp", "--repo", w.url, "--cluster", "prod")})
}

func connectTo(t *testing.T, transport mcp.Transport) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), transport, nil)
	must(t, err)
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// called calls a tool. It returns the response's text and data, and whether the call failed.
func called(t *testing.T, s *mcp.ClientSession, tool string, arguments any) (text string, data any, failed bool) {
	t.Helper()
	r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	for _, c := range r.Content {
		text += c.(*mcp.TextContent).Text
	}
	return text, r.StructuredContent, r.IsError
}

// withoutTimes removes the fields that depend on the time of the call.
func withoutTimes(data any) any {
	switch data := data.(type) {
	case map[string]any:
		for _, name := range []string{"at", "begins", "ends", "enters"} {
			delete(data, name)
		}
		for _, v := range data {
			withoutTimes(v)
		}
	case []any:
		for _, v := range data {
			withoutTimes(v)
		}
	}
	return data
}

// spans matches times since an event, such as 244h47m18s.
var spans = regexp.MustCompile(`\b(\d+[hms])+\b`)

// TestMCPAnswersAsTheCommands compares each reading tool with its command. The text must equal the command's output, and the data must
// equal its output with -o json.
func TestMCPAnswersAsTheCommands(t *testing.T) {
	w := newAgentWorld(t)
	s := w.connect()
	at := []string{"--repo", w.url, "--cluster", "prod"}
	manifest := strings.ReplaceAll(version("v3", "")["app.yaml"], "APP", "shop")
	w.repo.Write(map[string]string{"apps/shop/app.yaml": manifest}) // for plan
	for _, tt := range []struct {
		tool      string
		arguments map[string]any
		command   []string
	}{
		{"get", nil, []string{"get"}},
		{"get", map[string]any{"app": "shop"}, []string{"get", "shop"}},
		{"explain", map[string]any{"app": "shop"}, []string{"events", "shop"}},
		{"plan", nil, []string{"plan"}},
		{"plan", map[string]any{"head": "HEAD~1"}, []string{"plan", "--head", "HEAD~1"}},
		{"history", map[string]any{"app": "shop", "limit": 1}, []string{"history", "shop", "--limit", "1"}},
		{"fleet", nil, []string{"fleet"}},
		{"fleet", map[string]any{"app": "shop"}, []string{"fleet", "shop"}},
	} {
		args := append(tt.command, at...)
		if tt.tool == "fleet" {
			args = append(tt.command, at[:2]...)
		}
		name := strings.Join(tt.command, " ")
		wantText, _ := w.program(args...)
		wantJSON, _ := w.program(append(args, "-o", "json")...)
		var want any
		must(t, json.Unmarshal([]byte(wantJSON), &want))
		text, data, failed := called(t, s, tt.tool, tt.arguments)
		if failed || want == nil {
			t.Errorf("%s failed: %s", name, text)
		}
		text, _, _ = strings.Cut(text, "notes:\n")
		compare.CheckNamed(t, name+": text", spans.ReplaceAllString(wantText, "SPAN"), spans.ReplaceAllString(text, "SPAN"))
		compare.CheckNamed(t, name+": data", withoutTimes(want), withoutTimes(data))
	}
	_, refused := w.program("diff", "shop", "--repo", w.url, "--cluster", "prod")
	text, _, failed := called(t, s, "diff", map[string]any{"app": "shop"})
	compare.CheckNamed(t, "diff without a cluster", "gitrollout: "+text+"\n", refused)
	compare.CheckNamed(t, "it fails", true, failed)
}

// TestMCPDiffOfACluster checks, with a real API server, that the tool `diff` returns the differences that `gitrollout diff` prints.
func TestMCPDiffOfACluster(t *testing.T) {
	w, _ := newHealthyWorld(t, version("v1", halfThenGate))
	d := w.deployment()
	d.Spec.Template.Spec.Containers[0].Image = "app:other"
	must(t, errorOf(w.kube.Kube.AppsV1().Deployments(w.ns).Update(t.Context(), d, metav1.UpdateOptions{})))
	c := &mcpCommand{streams: streams{globalOptions: &globalOptions{
		source: sourceOptions{repo: w.server.URL, branch: "main", cluster: "test"},
		target: clusterOptions{kubeconfig: w.api.kubeconfig}}}, calls: make(chan struct{}, 1)}
	near, far := mcp.NewInMemoryTransports()
	must(t, errorOf(c.server().Connect(t.Context(), near, nil)))
	text, data, failed := called(t, connectTo(t, far), "diff", map[string]any{"app": w.app})
	differences := data.(map[string]any)["text"].(string)
	compare.CheckNamed(t, "failed", false, failed)
	compare.Contains(t, differences, "app:other")
	compare.Contains(t, text, differences)
	compare.Contains(t, w.clusterCommand(exitFailed, "diff", w.app), differences)
}

// TestMCPDescribesItsTools checks the annotations of each tool, and that each input has a description.
func TestMCPDescribesItsTools(t *testing.T) {
	list, err := newAgentWorld(t).connect().ListTools(t.Context(), nil)
	must(t, err)
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
		a := tool.Annotations
		if a.ReadOnlyHint != (tool.Name != "propose") || a.DestructiveHint == nil || *a.DestructiveHint || tool.Description == "" {
			t.Errorf("%s: %q, %+v", tool.Name, tool.Description, a)
		}
		schema := tool.InputSchema.(map[string]any)
		compare.CheckNamed(t, tool.Name+": more properties", any(false), schema["additionalProperties"])
		for name, input := range schema["properties"].(map[string]any) {
			if input.(map[string]any)["description"] == "" {
				t.Errorf("%s: %s has no description", tool.Name, name)
			}
		}
	}
	slices.Sort(names)
	compare.Check(t, []string{"diff", "explain", "fleet", "get", "history", "plan", "propose"}, names)
}

// TestMCPProposes checks a promotion's proposal: one commit on a new branch, with the agent as the author. A merge of the branch has
// the same effect as `gitrollout promote`. The branch is never overwritten.
func TestMCPProposes(t *testing.T) {
	w := newAgentWorld(t)
	s, before, main := w.connect(), w.repo.Refs(), w.repo.Ref("main")
	branch := "gitrollout/propose/prod/shop/promote-" + rollout.ShortID(main)
	file := rollout.PromotionPath("prod", "shop")
	arguments := map[string]any{"app": "shop", "verb": "promote", "reason": "all\x1b[2J good\n\nSigned-off-by: Ann"}
	text, data, failed := called(t, s, "propose", arguments)
	if failed {
		t.Fatal(text)
	}
	compare.Contains(t, text, "pushed "+branch+": after the merge, shop continues past step 2", "git merge --no-ff origin/"+branch)
	compare.Check(t, any(map[string]any{"branch": branch, "subject": "Promote shop past step 2", "files": []any{file}}), data)
	compare.CheckNamed(t, "parent", main, w.repo.InBare("rev-parse", branch+"~1"))
	compare.CheckNamed(t, "files", file, w.repo.InBare("diff", "--name-only", main, branch))
	compare.CheckNamed(t, "author", "agent[bot] <agent@example.com>", w.repo.InBare("log", "-1", "--format=%an <%ae>", branch))
	compare.Contains(t, w.repo.Message(branch), "\nReason: all", " good Signed-off-by: Ann")
	if now := w.repo.Refs(); len(now) != len(before)+1 {
		t.Errorf("refs are %v", now)
	}
	proposed := w.repo.Ref(branch)
	arguments["reason"] = "another one"
	text, _, failed = called(t, s, "propose", arguments)
	compare.CheckNamed(t, "again: "+text, []any{true, proposed}, []any{failed, w.repo.Ref(branch)})
	promotion := w.repo.Show(branch, file)
	w.repo.Merge(branch)
	w.program("promote", "shop", "--repo", w.url, "--cluster", "prod")
	compare.CheckNamed(t, "promotion", w.repo.Show("main", file), promotion)
	text, _, failed = called(t, s, "propose", arguments)
	compare.CheckNamed(t, "of the same file: "+text, true, failed)
	for verb, subject := range map[string]string{"hold": "Hold release", "abort": "Abort release", "undo": "Undo"} {
		text, data, failed := called(t, s, "propose", map[string]any{"app": "shop", "verb": verb, "reason": "slow\nX: y"})
		if failed {
			t.Errorf("%s: %s", verb, text)
			continue
		}
		branch := data.(map[string]any)["branch"].(string)
		compare.Contains(t, w.repo.Message(branch), subject, "Reason: slow X: y")
	}
}

// hostile lists calls that try to exceed the tools' rights, or to end the server. If want is not "", the call must fail with an error that
// contains want.
var hostile = []struct{ tool, arguments, want string }{
	{"get", `{"app": "../../../etc/passwd"}`, "has no app"},
	{"get", `{"app": "--kubeconfig=/etc/passwd"}`, "has no app"},
	{"get", `{"app": "--repo=https://evil.example.com/x.git"}`, "has no app"},
	{"get", `{"app": "--help"}`, "has no app"},
	{"get", `{"app": "--server=http://127.0.0.1:1"}`, "has no app"},
	{"get", `{"app": "shop", "repo": "/etc"}`, "additional properties"},
	{"get", `{"app": "shop", "cluster": "other"}`, "additional properties"},
	{"get", `{"app": "shop", "kubeconfig": "/root/.kube/config"}`, "additional properties"},
	{"get", `{"app": "shop", "verb": "abort"}`, "additional properties"},
	{"get", `{"app": ""}`, "minLength"},
	{"get", `{"app": "HUGE"}`, "maxLength"},
	{"get", `{"app": "shop\u0000"}`, "has no app"},
	{"get", `{"app": "shop\n\u001b[2J"}`, "has no app"},
	{"get", `{"app": "shop; touch pwned"}`, "has no app"},
	{"get", `{"app": ["shop"]}`, "type"},
	{"get", `{"app": null}`, "type"},
	{"get", `{"app": {"name": "shop"}}`, "type"},
	{"get", `["shop"]`, "arguments"},
	{"get", `"shop"`, "arguments"},
	{"get", `{"app": "till"}`, "has no app"},
	{"explain", `{}`, "required"},
	{"explain", `{"app": "refs/heads/main"}`, "has no app"},
	{"plan", `{"head": "--upload-pack=touch pwned"}`, "is not a commit"},
	{"plan", `{"head": "-c core.sshCommand=touch pwned"}`, "is not a commit"},
	{"plan", `{"head": "HEAD:.gitrollout"}`, "is not a commit"},
	{"plan", `{"head": "$(touch pwned)"}`, "is not a commit"},
	{"plan", `{"comment": true}`, "additional properties"},
	{"plan", `{"policy": "/etc/passwd"}`, "additional properties"},
	{"history", `{"app": "shop", "limit": -1}`, "minimum"},
	{"history", `{"app": "shop", "limit": 1e12}`, "maximum"},
	{"history", `{"app": "shop", "limit": "all"}`, "type"},
	{"diff", `{"app": "*"}`, ""},
	{"fleet", `{"app": "../other"}`, "no cluster has an app"},
	{"propose", `{"app": "shop", "verb": "push"}`, "enum"},
	{"propose", `{"app": "shop", "verb": "Promote"}`, "enum"},
	{"propose", `{"app": "shop", "verb": ["abort"]}`, "type"},
	{"propose", `{"app": "shop", "verb": "promote", "branch": "refs/heads/main"}`, "additional properties"},
	{"propose", `{"app": "shop", "verb": "promote", "force": true}`, "additional properties"},
	{"propose", `{"app": "shop", "verb": "promote", "author": "Ann <ann@example.com>"}`, "additional properties"},
	{"propose", `{"app": "shop", "verb": "undo", "to": "refs/tags/v1"}`, "additional properties"},
	{"propose", `{"app": "refs/heads/main", "verb": "promote"}`, "has no app"},
	{"propose", `{"app": "gitrollout/state/prod", "verb": "abort"}`, "has no app"},
	{"propose", `{"app": "../../main", "verb": "restart"}`, "has no app"},
	{"propose", `{"app": "shop:main", "verb": "hold"}`, "has no app"},
	{"propose", `{"app": "till", "verb": "hold"}`, "has no app"},
	{"propose", `{"app": "cart", "verb": "undo"}`, "no record"},
	{"propose", `{"app": "shop", "verb": "promote", "through": "--full"}`, "is not a step"},
	{"propose", `{"app": "shop", "verb": "promote", "through": "../../config"}`, "is not a step"},
	{"propose", `{"app": "shop", "verb": "promote", "reason": "HUGE"}`, "maxLength"},
	{"propose", `{"app": "shop", "verb": "hold", "reason": "x\n---\nkind: Policy\n\u001b]0;\u0007 --force"}`, ""},
	{"propose", `{"app": "shop", "verb": "abort", "reason": "\"; git push --force origin HEAD:main #"}`, ""},
	{"state_repair", `{"app": "shop"}`, "unknown tool"},
	{"run", `{}`, "unknown tool"},
}

// TestMCPHostileCalls makes the hostile calls, many calls at once, and cancelled calls. Afterwards, the MCP server still answers. In Git,
// only branches of proposals are new, and each changes only its app's files.
func TestMCPHostileCalls(t *testing.T) {
	w := newAgentWorld(t)
	w.repo.InBare("update-ref", "refs/tags/v1", w.repo.Ref("main"))
	s, before, main := w.connect(), w.repo.Refs(), w.repo.Ref("main")
	if len(hostile) < 40 {
		t.Fatalf("only %d calls", len(hostile))
	}
	for _, tt := range hostile {
		arguments := json.RawMessage(strings.ReplaceAll(tt.arguments, "HUGE", strings.Repeat("a", 2_000_000)))
		r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tt.tool, Arguments: arguments})
		said := fmt.Sprint(err)
		if err == nil {
			said = ""
			for _, c := range r.Content {
				said += c.(*mcp.TextContent).Text
			}
		}
		if tt.want != "" && (err == nil && !r.IsError || !strings.Contains(said, tt.want) || len(said) > 3_000) {
			t.Errorf("%s %s: %t, %d bytes: %.200s; want %s", tt.tool, tt.arguments, err == nil && !r.IsError, len(said), said, tt.want)
		}
		if strings.ContainsAny(said, "\x1b\x00") {
			t.Errorf("%s %s answers control characters: %q", tt.tool, tt.arguments, said)
		}
	}
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			if i%2 == 0 {
				ctx, cancel = context.WithTimeout(t.Context(), time.Duration(i)*20*time.Millisecond)
			}
			defer cancel()
			_, _ = s.CallTool(ctx, &mcp.CallToolParams{Name: "propose", Arguments: map[string]any{"app": "shop", "verb": "promote"}})
		})
	}
	all.Wait()
	if text, _, failed := called(t, s, "get", map[string]any{"app": "shop"}); failed {
		t.Errorf("the server does not answer: %s", text)
	}
	after := w.repo.Refs()
	for ref, commit := range after {
		branch, isProposal := strings.CutPrefix(ref, "refs/heads/gitrollout/propose/prod/shop/")
		switch {
		case isProposal:
			compare.CheckNamed(t, branch+": parent", main, w.repo.InBare("rev-parse", ref+"~1"))
			changed := w.repo.InBare("diff", "--name-only", main, ref)
			compare.CheckNamed(t, branch+": files", rollout.PromotionPath("prod", "shop"), changed)
			delete(after, ref)
		case before[ref] != commit:
			t.Errorf("%s was at %q, and is at %s", ref, before[ref], commit)
		}
	}
	compare.Check(t, slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)))
	compare.CheckNamed(t, "working copy", "", w.repo.Git("status", "--porcelain"))
}

// TestMCPCutsLongAnswers checks that too long an answer is cut, and that the end of the answer says how many bytes are missing.
func TestMCPCutsLongAnswers(t *testing.T) {
	t.Parallel()
	w := &agentWorld{t, fleetRepo(t, 1500), ""}
	w.url = w.repo.HTTP(gittest.HTTPOptions{}).URL
	text, data, failed := called(t, w.connect(), "get", nil)
	if failed || data != nil || len(text) > 2*maxAnswer {
		t.Errorf("failed %t, %d bytes of text, data %T", failed, len(text), data)
	}
	compare.Contains(t, text[max(0, len(text)-300):], "more bytes are left out", "the data of ")
}

// TestMCPSurvivesAPanic checks that a call returns an error if the tool panics.
func TestMCPSurvivesAPanic(t *testing.T) {
	c := &mcpCommand{streams: streams{globalOptions: &globalOptions{}}, calls: make(chan struct{}, 1)}
	panics := tool{name: "get", run: func(context.Context, streams, toolInput) error { panic("a bug") }}
	for range 2 { // the first call must free the only place in c.calls
		if _, _, err := c.call(t.Context(), panics, toolInput{}); err == nil || err.Error() != "get panicked: a bug" {
			t.Errorf("error %v", err)
		}
	}
	prints := tool{run: func(_ context.Context, s streams, _ toolInput) error {
		return errorOf(io.WriteString(s.out, strings.Repeat("ä", maxAnswer)))
	}}
	r, _, err := c.call(t.Context(), prints, toolInput{})
	must(t, err)
	compare.Contains(t, r.Content[0].(*mcp.TextContent).Text, "ä\n… 100000 more bytes are left out")
}

// TestMCPSurvivesOtherLines checks that each line that is no message gets one error, and that the server continues.
func TestMCPSurvivesOtherLines(t *testing.T) {
	t.Parallel()
	in, typed := io.Pipe()
	answers, out := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(t.Context(), []string{"mcp", "--repo", "/nonexistent"}, in, out, io.Discard)
		_, _ = in.Close(), out.Close()
	}()
	lines := bufio.NewScanner(answers)
	for _, c := range [][2]string{
		{"{\"jsonrpc\":", `"code":-32700`}, {"7", `"code":-32700`}, {"{}\n\r", `"code":-32700`}, {`{"jsonrpc":"2.0"} x`, `"code":-32700`},
		{`{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\r", `"id":1,"result":{}`}, {"[", `"code":-32700`},
		{"[]", `"code":-32700`}, {"null", `"code":-32700`}, {`[{"jsonrpc":"2.0","id":3,"method":"ping"}, 1]`, `"code":-32700`},
		{`[{"jsonrpc":"2.0","id":4,"method":"ping"}]`, `[{"jsonrpc":"2.0","id":4,"result":{}}]`},
		{`{"jsonrpc":"2.0","id":2,"method":"ping"}`, `"id":2,"result":{}`},
	} {
		_, err := io.WriteString(typed, c[0]+"\n")
		must(t, err)
		if !lines.Scan() || !strings.Contains(lines.Text(), c[1]) {
			t.Fatalf("the answer to %q is %q, want %s", c[0], lines.Text(), c[1])
		}
	}
	must(t, typed.Close())
	compare.Check(t, 0, <-ended)
}
