package e2e

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/rollout"
)

// planted maps descriptions to the secrets of one test.
type planted map[string]string

// plant generates a secret, and adds it to the secrets of the test.
func (p planted) plant(what string) string {
	secret := "Planted" + strings.ReplaceAll(what, " ", "") + "x9Zq"
	p[what] = secret
	return secret
}

// file adds each line of the body of a key file to the secrets.
func (p planted) file(t *testing.T, what, file string) {
	t.Helper()
	for i, line := range strings.Split(readText(t, file), "\n") {
		if len(line) >= 32 && !strings.HasPrefix(line, "-----") {
			p[fmt.Sprintf("%s line %d", what, i+1)] = line
		}
	}
}

// search fails the test if a text contains a secret, plain or in base64.
func (p planted) search(t *testing.T, where, text string) {
	t.Helper()
	for what, secret := range p {
		forms := []string{secret}
		for pad := range 3 { // the three alignments of base64
			encoded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", pad) + secret))
			forms = append(forms, encoded[4:len(encoded)-4])
		}
		for _, form := range forms {
			if at := strings.Index(text, form); at >= 0 {
				t.Errorf("%s holds the %s: …%s…", where, what, text[max(0, at-200):min(len(text), at+len(form)+60)])
				break
			}
		}
	}
}

// written returns the content of all objects on the Git server that are not reachable from main. These are the objects
// that gitrollout has pushed, including objects of deleted proposal branches.
func (w *world) written() string {
	w.t.Helper()
	users := map[string]bool{}
	for _, line := range strings.Split(w.repo.InBare("rev-list", "--objects", "main"), "\n") {
		id, _, _ := strings.Cut(line, " ")
		users[id] = true
	}
	var all strings.Builder
	for _, line := range strings.Split(w.repo.InBare("cat-file", "--batch-all-objects", "--batch-check"), "\n") {
		id, kind, _ := strings.Cut(line, " ")
		if !users[id] && !strings.HasPrefix(kind, "tree") {
			kind, _, _ = strings.Cut(kind, " ")
			all.WriteString(w.repo.InBare("cat-file", kind, id) + "\n")
		}
	}
	return all.String()
}

// newKey returns a new OpenSSH key file. If passphrase is "", the key has no passphrase.
func newKey(t *testing.T, passphrase string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key")
	output(t, exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", file))
	return file
}

// TestSecretsStayInside releases an app with Secrets while gitrollout uses credentials, and then pushes many invalid
// versions. No secret may appear in the output, in the objects that gitrollout pushes, or in the cluster's Events.
func TestSecretsStayInside(t *testing.T) {
	t.Parallel()
	p := planted{}
	app := newShop(2, "", "setWeight: 50", "pause: {}")
	app.more = map[string]string{"secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: plain}\nstringData:\n  password: " +
		p.plant("plain Secret") + "\n"}
	with := func(version string, more map[string]string) map[string]string {
		files := app.at(version).files()
		files["kustomization.yaml"] += "secretGenerator:\n- name: generated\n  literals:\n  - password=" + p.plant("generated Secret") +
			"\n- name: enved\n  envs: [secret.env]\n- name: filed\n  files: [secret.bin]\n"
		files["shop.yaml"] = strings.Replace(files["shop.yaml"], "        ports:",
			"        envFrom: [{secretRef: {name: generated}}, {secretRef: {name: enved}}]\n        ports:", 1)
		files["secret.env"] = "TOKEN=" + p.plant("Secret from an env file") + "\n"
		files["secret.bin"] = p.plant("Secret from a file") + "\n"
		maps.Copy(files, more)
		return files
	}
	w := newWorld(t, with("v1", nil))
	w.server.Stop()
	w.server = w.repo.HTTP(gittest.HTTPOptions{User: "x-access-token", Password: p.plant("token")})
	key := newKey(t, p.plant("signing passphrase"))
	p.file(t, "signing key", key)
	w.env = []string{"GITROLLOUT_GIT_TOKEN=" + p["token"], "GITROLLOUT_SIGNING_KEY=" + key,
		"GITROLLOUT_SIGNING_PASSPHRASE=" + p["signing passphrase"]}
	w.start("--log-level", "debug").awaitHealthy(w.repo.Head())
	w.release("v2", with("v2", nil))
	inventory := w.repo.Show(w.stateBranch(), rollout.StatePath(w.app))
	compare.Contains(t, inventory, "core/Secret/"+w.ns+"/generated-")
	w.verifyState(tempFile(t, "signers", "bot "+readText(t, key+".pub")))

	literal := func(line string) map[string]string {
		return map[string]string{"kustomization.yaml": "resources: [shop.yaml, rollout.yaml, services.yaml]\nsecretGenerator:\n" +
			"- name: generated\n  " + line + "\n"}
	}
	secret := func(lines string) map[string]string {
		return map[string]string{"secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: plain}\n" + lines + "\n"}
	}
	for name, files := range map[string]map[string]string{
		"literal without a key":  literal("literals: [" + p.plant("literal without a key") + "]"),
		"literals of no list":    literal("literals: " + p.plant("literals of no list")),
		"unknown field":          literal("literal: [a=" + p.plant("unknown field") + "]"),
		"same key twice":         literal("literals: [a=" + p.plant("first of two") + ", a=" + p.plant("second of two") + "]"),
		"bad key":                literal("literals: [\"a b=" + p.plant("bad key") + "\"]"),
		"bad env file":           {"secret.env": "this is " + p.plant("bad env file") + "\n"},
		"no base64":              secret("data: {password: \"!" + p.plant("no base64") + "!\"}"),
		"number for a string":    secret("stringData: {password: 12, other: " + p.plant("beside a number") + "}"),
		"list for a string":      secret("stringData: {password: [" + p.plant("list for a string") + "]}"),
		"data of no map":         secret("data: " + p.plant("data of no map")),
		"broken YAML":            secret("stringData: {password: " + p.plant("broken YAML")),
		"second document broken": secret("stringData: {password: a}\n---\n" + p.plant("second document")),
		"no kind":                {"secret.yaml": "metadata: {name: plain}\nstringData: {password: " + p.plant("no kind") + "}\n"},
		"Secret in a list": {"secret.yaml": "apiVersion: v1\nkind: List\nitems:\n- kind: Secret\n  stringData: {password: " +
			p.plant("in a list") + "}\n"},
		"key too odd":   secret("stringData: {\"" + "a b/" + p.plant("odd key") + "\": x}"),
		"label too odd": secret("  labels: {a: \"b\"}\nstringData: {password: " + p.plant("bad indentation") + "}"),
		"patch that fails": {"kustomization.yaml": "resources: [shop.yaml, rollout.yaml, services.yaml, secret.yaml]\npatches:\n" +
			"- patch: |\n    kind: Secret\n    apiVersion: v1\n    metadata: {name: nobody}\n    stringData: {a: " + p.plant("patch") + "}\n"},
		"JSON patch that fails": {"kustomization.yaml": "resources: [shop.yaml, rollout.yaml, services.yaml, secret.yaml]\npatches:\n" +
			"- target: {kind: Secret}\n  patch: '[{op: replace, path: /nothing/there, value: " + p.plant("JSON patch") + "}]'\n"},
	} {
		w.push("good", with("v2", nil))
		w.await("not held", func(s rollout.State) bool { return s.Held == nil })
		commit := w.push(name, with("v2", files))
		seen := w.await(name+" is held, or accepted", func(s rollout.State) bool { return s.Held != nil || s.Source == commit })
		t.Logf("%s: held %+v", name, seen.Held)
		if out, err := w.cli("diff", w.app); err != nil {
			p.search(t, "diff, "+name, withoutObjects(out))
		}
		out, _ := w.cli("get", w.app)
		p.search(t, "get, "+name, out)
	}
	// The Git server refuses every request.
	w.server.Fault(gittest.Faults{Status: http.StatusForbidden})
	time.Sleep(time.Second)
	w.server.Fault(gittest.Faults{})
	w.stop()
	p.search(t, "the log", w.log.String())
	p.search(t, "the pushed objects", w.written())
	events, err := w.cluster.Kube.EventsV1().Events(w.ns).List(context.Background(), metav1.ListOptions{})
	must(t, err)
	p.search(t, "an event", fmt.Sprint(events.Items))
}

// verifyState verifies the signatures of the state branch's commits with a file of allowed signers.
func (w *world) verifyState(signers string) {
	w.t.Helper()
	for _, id := range strings.Fields(w.repo.InBare("rev-list", w.stateBranch())) {
		w.repo.InBare("-c", "gpg.format=ssh", "-c", "gpg.ssh.allowedSignersFile="+signers, "verify-commit", id)
	}
}

// withoutObjects returns an output without the lines of its diffs.
func withoutObjects(out string) string {
	lines := slices.DeleteFunc(strings.Split(out, "\n"), func(line string) bool {
		return strings.HasPrefix(line, "+") || strings.HasPrefix(line, "-") || strings.HasPrefix(line, " ")
	})
	return strings.Join(lines, "\n")
}

// TestCredentialsAreNotTold runs gitrollout list with each kind of credential, valid, invalid or malformed. No output may contain a
// credential.
func TestCredentialsAreNotTold(t *testing.T) {
	t.Parallel()
	p := planted{}
	repo := gittest.New(t)
	repo.CommitFiles("first", map[string]string{
		configFile:                  "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps:\n- path: apps/*\n",
		"apps/a/kustomization.yaml": "resources: []\n",
	})
	password := p.plant("password")
	web := repo.HTTP(gittest.HTTPOptions{User: "ann", Password: password})
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		user, password, _ := req.BasicAuth()
		http.Error(w, fmt.Sprint("not you, ", user, " ", password, " ", req.Header), http.StatusForbidden)
	}))
	t.Cleanup(echo.Close)
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	appKey := file("app.pem", string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(rsaKey)})))
	p.file(t, "GitHub App key", appKey)
	ssh := repo.SSH(gittest.SSHOptions{})
	p.file(t, "ssh key", ssh.KeyFile)
	locked := newKey(t, p.plant("ssh passphrase"))
	p.file(t, "locked ssh key", locked)
	other := repo.NewKeyFile()
	p.file(t, "another ssh key", other)
	withUser := func(url, password string) string { return strings.Replace(url, "://", "://ann:"+password+"@", 1) }
	app := []string{"GITROLLOUT_GITHUB_APP_ID=1", "GITROLLOUT_GITHUB_INSTALLATION_ID=2", "GITROLLOUT_GITHUB_KEY_FILE=" + appKey}
	for name, c := range map[string]struct {
		url   string
		env   []string
		flags []string
		ok    bool
	}{
		"password": {web.URL, []string{"GITROLLOUT_GIT_USERNAME=ann", "GITROLLOUT_GIT_PASSWORD=" + password}, nil, true},
		"password file": {web.URL,
			[]string{"GITROLLOUT_GIT_USERNAME=ann", "GITROLLOUT_GIT_PASSWORD_FILE=" + file("password", password+"\n")}, nil, true},
		"token file": {web.URL,
			[]string{"GITROLLOUT_GIT_USERNAME=ann", "GITROLLOUT_GIT_TOKEN_FILE=" + file("token", password+"\n")}, nil, true},
		"password in a URL": {withUser(web.URL, password), nil, nil, true},
		"wrong password":    {web.URL, []string{"GITROLLOUT_GIT_PASSWORD=" + p.plant("wrong password")}, nil, false},
		"wrong token":       {web.URL, []string{"GITROLLOUT_GIT_TOKEN=" + p.plant("wrong token")}, nil, false},
		"wrong in a URL":    {withUser(web.URL, p.plant("wrong in a URL")), nil, nil, false},
		"wrong in a file":   {web.URL, []string{"GITROLLOUT_GIT_TOKEN_FILE=" + file("wrong", p.plant("wrong in a file"))}, nil, false},
		"echoed":            {echo.URL + "/r.git", []string{"GITROLLOUT_GIT_TOKEN=" + p.plant("echoed token")}, nil, false},
		"echoed from a file": {echo.URL + "/r.git",
			[]string{"GITROLLOUT_GIT_TOKEN_FILE=" + file("echoed", p.plant("echoed from a file"))}, nil, false},
		"URL that is none": {"https://ann:" + p.plant("odd password") + "%zz@example.com/r", nil, nil, false},
		"URL with a query": {"https://example.com/r?token=" + p.plant("query"), nil, nil, false},
		"plain http":       {withUser("http://git.example.com/r", p.plant("plain http")), nil, nil, false},
		"two at once":      {web.URL, append([]string{"GITROLLOUT_GIT_TOKEN=" + p.plant("second")}, app...), nil, false},
		"proxy": {"https://git.example.com/r",
			[]string{"HTTPS_PROXY=" + withUser("http://127.0.0.1:1", p.plant("proxy password"))}, nil, false},
		"GitHub App": {web.URL, append([]string{"GITROLLOUT_GITHUB_API=" + echo.URL}, app...), nil, false},
		"GitHub App, bad key": {web.URL, []string{"GITROLLOUT_GITHUB_APP_ID=1", "GITROLLOUT_GITHUB_INSTALLATION_ID=2",
			"GITROLLOUT_GITHUB_KEY_FILE=" +
				file("bad.pem", "-----BEGIN RSA PRIVATE KEY-----\n"+p.plant("bad key")+"\n-----END RSA PRIVATE KEY-----\n")}, nil, false},
		"ssh key":       {ssh.URL, nil, []string{"--ssh-key", ssh.KeyFile, "--known-hosts", ssh.KnownHosts}, true},
		"other ssh key": {ssh.URL, nil, []string{"--ssh-key", other, "--known-hosts", ssh.KnownHosts}, false},
		"locked ssh key": {ssh.URL, []string{"GITROLLOUT_SSH_PASSPHRASE=" + p["ssh passphrase"]},
			[]string{"--ssh-key", locked, "--known-hosts", ssh.KnownHosts}, false},
		"wrong passphrase": {ssh.URL, []string{"GITROLLOUT_SSH_PASSPHRASE=" + p.plant("wrong passphrase")},
			[]string{"--ssh-key", locked, "--known-hosts", ssh.KnownHosts}, false},
		"odd ssh key":     {ssh.URL, nil, []string{"--ssh-key", file("odd", p.plant("odd ssh key")), "--known-hosts", ssh.KnownHosts}, false},
		"odd signing key": {web.URL, nil, []string{"--signing-key", file("odd2", p.plant("odd signing key"))}, false},
		"locked signing key": {web.URL, []string{"GITROLLOUT_SIGNING_PASSPHRASE=" + p.plant("wrong signing passphrase")},
			[]string{"--signing-key", locked}, false},
		"odd client key": {"https://git.example.com/r", nil, []string{"--git-cert", file("odd3", p.plant("odd client key"))}, false},
	} {
		path, err := binary()
		must(t, err)
		cmd := exec.Command(path, append([]string{"list", "--cluster", "test"}, c.flags...)...)
		cmd.Env = append(gittest.Env(), "HOME="+dir, "KUBECONFIG=/dev/null", "GITROLLOUT_REPO="+c.url)
		cmd.Env = append(cmd.Env, c.env...)
		out, err := cmd.CombinedOutput()
		if (err == nil) != c.ok {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		p.search(t, name, string(out))
		for what, secret := range p {
			if strings.Contains(strings.Join(cmd.Args, " "), secret) {
				t.Errorf("%s: the test itself puts the %s on the command line", name, what)
			}
		}
	}
}
