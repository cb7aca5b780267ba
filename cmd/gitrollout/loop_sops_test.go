package main

import (
	"context"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/internal/sopstest"
	"gitrollout.dev/gitrollout/internal/tier"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/dashboard"
)

// manifest calls sopstest.Manifest until the ciphertext lacks APP, because a push would replace APP. whole calls sopstest.Whole in the same
// way.
func manifest(t testing.TB, content string, to sopstest.Key) string {
	for {
		if out := sopstest.Manifest(t, content, to); !strings.Contains(out, "APP") {
			return out
		}
	}
}

func whole(t testing.TB, name, content string, to sopstest.Key) string {
	for {
		if out := sopstest.Whole(t, name, content, to); !strings.Contains(out, "APP") {
			return out
		}
	}
}

// decrypting is a configuration entry for apps whose SOPS keys are in the Secret sops-keys.
const decrypting = "- path: apps/*\n  decryption: {provider: sops, secretRef: {name: sops-keys}}"

// encrypted returns a version of the app with two encrypted Secrets: "plain" from a manifest, and "made" from a generator. The pods use
// "made".
func (w *loopWorld) encrypted(tag, value string, key sopstest.Key) map[string]string {
	w.Helper()
	files := version(tag, halfThenGate)
	return with(files, map[string]string{
		"kustomization.yaml": "resources: [app.yaml, service.yaml, rollout.yaml, secret.yaml]\n" +
			"secretGenerator: [{name: made, envs: [made.env]}]\n",
		"secret.yaml": manifest(w, plainSecret("stringData: {password: "+value+"}"), key),
		"made.env":    whole(w, "made.env", "PASSWORD="+value+"\n", key),
		"app.yaml":    strings.Replace(files["app.yaml"], "- {name: app,", "- {name: app, envFrom: [{secretRef: {name: made}}],", 1),
	})
}

// plainSecret adds a line to the manifest of the Secret `plain`, and returns the result.
func plainSecret(line string) string {
	return "apiVersion: v1\nkind: Secret\nmetadata: {name: plain}\n" + line + "\n"
}

// newEncryptedWorld returns a world with an app whose configuration entry has decryption.
func newEncryptedWorld(t *testing.T) *loopWorld {
	t.Helper()
	w := newLoopWorld(t, version("v0", halfThenGate))
	w.configure(w.config(decrypting))
	return w
}

// keep creates or replaces the Secret sops-keys in a namespace, with the given keys.
func (w *loopWorld) keep(namespace string, keys ...sopstest.Key) {
	w.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "sops-keys"}, StringData: map[string]string{}}
	for _, key := range keys {
		s.StringData[key.Name] = key.Secret
	}
	secrets := w.kube.Kube.CoreV1().Secrets(namespace)
	_ = secrets.Delete(w.Context(), s.Name, metav1.DeleteOptions{})
	must(w, errorOf(secrets.Create(w.Context(), s, metav1.CreateOptions{})))
}

// secretValues returns the live value of the Secret `plain`, and the space-separated values and names of the Secrets made-HASH.
func (w *loopWorld) secretValues() (plain, made, name string) {
	w.Helper()
	all, err := w.kube.Kube.CoreV1().Secrets(w.ns).List(w.Context(), metav1.ListOptions{})
	must(w, err)
	for _, s := range all.Items {
		switch {
		case s.Name == "plain":
			plain = string(s.Data["password"])
		case strings.HasPrefix(s.Name, "made-"):
			made += string(s.Data["PASSWORD"]) + " "
			name += s.Name + " "
		}
	}
	return plain, strings.TrimSpace(made), strings.TrimSpace(name)
}

// TestEncryptedSecrets checks that an app is held and has no Deployment until its key is readable. With its age or
// PGP key, the app is released. Later passes without changes neither write nor render.
func TestEncryptedSecrets(t *testing.T) {
	t.Parallel()
	for kind, make := range map[string]func(testing.TB) sopstest.Key{"age": sopstest.Age, "pgp": sopstest.PGP} {
		t.Run(kind, func(t *testing.T) {
			tier.Rows(t, "age")
			key := make(t)
			w := newEncryptedWorld(t)
			w.push("v1", w.encrypted("v1", "hunter2-planted", key))
			p := w.start()
			s := p.awaitHeld("is encrypted with SOPS, and its keys cannot be read", "Secret "+w.ns+"/sops-keys")
			if s.Held.Reason != rollout.HeldUndecryptable {
				t.Fatalf("held %+v", s.Held)
			}
			w.wantNoDeployment()
			w.keep(w.ns, sopstest.Age(t))
			p.awaitHeld("and no key in Secret " + w.ns + "/sops-keys opens it")
			w.keep(w.ns, key)
			p.awaitHealthy(w.repo.Head())
			if plain, made, _ := w.secretValues(); plain != "hunter2-planted" || made != "hunter2-planted" {
				t.Errorf("the Secrets hold %q and %q", plain, made)
			}
			w.wantNoWrites(p)
			for command, warns := range map[string]bool{"get " + w.app: false, "explain " + w.app: false, "validate": true} {
				if out := w.said(strings.Fields(command)...); strings.Contains(out, "gitrollout validate has no key") != warns {
					t.Errorf("%s of an app at rest: %s", command, out)
				}
			}
		})
	}
}

// said runs a command and returns its output. It ignores the exit code.
func (w *loopWorld) said(args ...string) string {
	out := &safeBuffer{}
	run(w.Context(), append(args, "--repo", w.server.URL, "--cluster", "test"), strings.NewReader(""), out, out)
	return out.String()
}

// TestDoctorTriesKeys checks that doctor tries to decrypt each encrypted file of an app. Doctor names the files that cannot be decrypted,
// with the fix, and shows no decrypted values.
func TestDoctorTriesKeys(t *testing.T) {
	key, other := sopstest.Age(t), sopstest.Age(t)
	w := newEncryptedWorld(t)
	files := w.encrypted("v1", "hunter2-planted", key)
	files["made.env"] = whole(w, "made.env", "PASSWORD=hunter2-planted\n", other)
	w.push("v1", files)
	want := func(texts ...string) {
		t.Helper()
		out := strings.Join(strings.Fields(w.said("doctor", "--no-push", "--kubeconfig", w.api.kubeconfig)), " ")
		w.wantText(out, texts...)
		if strings.Contains(out, "hunter2") || strings.Contains(out, "AGE-SECRET") {
			t.Errorf("a secret is in\n%s", out)
		}
	}
	want("problem cluster.keys encrypted files of "+w.app+": Secret "+w.ns+"/sops-keys: secrets \"sops-keys\" not found",
		"fix: create it, or allow reading it")
	w.keep(w.ns, sopstest.Key{Name: "README", Secret: "none"})
	want("Secret "+w.ns+"/sops-keys has no entry whose name ends in .agekey or .asc", "fix: put keys there")
	w.keep(w.ns, key)
	want("problem cluster.keys apps/"+w.app+"/made.env of "+w.app+" is encrypted by SOPS for age age1",
		"fix: add a recipient's key to the Secret, or encrypt the file for a key in the Secret",
		"ok cluster.keys Secret "+w.ns+"/sops-keys opens 1 of 2 encrypted files of "+w.app)
	files["secret.yaml"] = strings.Replace(files["secret.yaml"], "kind: Secret", "kind: Secret\ntype: Opaque", 1)
	files["made.env"] = whole(w, "made.env", "PASSWORD=hunter2-planted\n", key)
	w.push("changed", files)
	want("problem cluster.keys apps/" + w.app + "/secret.yaml of " + w.app + " was changed without sops")
}

// wantNoWrites makes passes without a change in Git. These passes may neither write nor render, because rendering needs a key.
func (w *loopWorld) wantNoWrites(p *loopProcess) {
	w.Helper()
	_ = p.passes(3)
	before := p.renderer.Builds()
	p.wantNoWrites(5)
	if n := p.renderer.Builds() - before; n != 0 {
		w.Errorf("%d builds at rest", n)
	}
}

// TestAKeyIsForItsApps checks that a file is not decrypted with the key of another app, although the process can read both keys. An app is
// held if its ServiceAccount cannot read the Secret with the keys.
func TestAKeyIsForItsApps(t *testing.T) {
	key := sopstest.Age(t)
	w := newLoopWorld(t, version("v1", halfThenGate))
	theirs := w.kube.Namespace(t)
	w.namespaces = append(w.namespaces, theirs)
	w.keep(w.ns, key)
	w.keep(theirs, sopstest.Age(t))
	thief := "thief-" + w.ns
	config := w.config(strings.Replace(decrypting, "apps/*", "apps/"+w.app, 1)) +
		strings.Replace(decrypting, "apps/*", "apps/"+thief, 1) + "\n  namespace: " + theirs + "\n"
	w.configure(config)
	w.push("secrets", w.encrypted("v1", "hunter2-planted", key))
	w.pushAs(thief, "stolen", w.encrypted("v1", "hunter2-planted", key))
	p := w.start()
	p.await("released", func(s rollout.State) bool { return s.Phase == rollout.Healthy && s.Held == nil })
	p.wantHeldOf(thief, rollout.HeldUndecryptable, "no key in Secret "+theirs+"/sops-keys opens it")
	w.configure(strings.Replace(config, "  namespace: "+w.ns, "  serviceAccount: deployer\n  namespace: "+w.ns, 1))
	w.grantDeployer()
	w.push("another value", w.encrypted("v1", "hunter3-planted", key))
	p.awaitHeld("its keys cannot be read", `User "system:serviceaccount:`+w.ns+`:deployer" cannot get resource "secrets"`)
	w.grant("keys", rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "create", "patch", "delete"},
	})
	p.await("goes on", func(s rollout.State) bool { return s.Held == nil && s.Phase == rollout.Paused })
}

// newWorldWithoutAKey returns a world in which v1 is stable and v2 is paused. v1's key (old) is deleted, and no running process has read
// it. The other results are v1's files and the name of v1's generated Secret.
func newWorldWithoutAKey(t *testing.T) (w *loopWorld, old sopstest.Key, before map[string]string, stable string) {
	t.Helper()
	old, next := sopstest.Age(t), sopstest.Age(t)
	w = newEncryptedWorld(t)
	w.keep(w.ns, old)
	before = w.encrypted("v1", "hunter1-planted", old)
	w.push("v1", before)
	p := w.startHealthy()
	_, _, stable = w.secretValues()
	w.keep(w.ns, next)
	p.awaitPaused(w.push("v2", w.encrypted("v2", "hunter2-planted", next)))
	p.end()
	return w, old, before, stable
}

// TestARetreatWithoutItsKey aborts a release in a process that cannot read the stable version's key. Before the
// abort, the app is not held. The rollback uses the stable version's Secret in the cluster.
func TestARetreatWithoutItsKey(t *testing.T) {
	w, _, _, stable := newWorldWithoutAKey(t)
	p := w.start()
	p.passWell(5)
	s := w.state()
	if s.Phase != rollout.Paused || s.Held != nil {
		t.Fatalf("it is %s, held %+v", s.Phase, s.Held)
	}
	w.decide(s.Release.Hash, "abort", "")
	p.await("back", func(s rollout.State) bool { return s.Phase == rollout.Degraded && w.image() == "v1" })
	p.passWell(5)
	if from := w.deployment().Spec.Template.Spec.Containers[0].EnvFrom; len(from) != 1 || from[0].SecretRef.Name != stable {
		t.Errorf("the pods have %+v, want %s", from, stable)
	}
	if plain, made, _ := w.secretValues(); !strings.Contains(made, "hunter1-planted") || plain != "hunter2-planted" {
		t.Errorf("the Secrets hold %q and %q", plain, made)
	}
}

// TestARevertWithoutItsKey reverts a release in a process that cannot read the key of the stable version. The rollback needs no key, but a
// new version encrypted for that key is held.
func TestARevertWithoutItsKey(t *testing.T) {
	w, old, before, _ := newWorldWithoutAKey(t)
	p := w.start()
	w.push("v1 again", before)
	p.await("back", func(s rollout.State) bool { return s.Release == nil && w.image() == "v1" })
	w.push("v3, for the key that has gone", w.encrypted("v3", "hunter3-planted", old))
	p.awaitHeld("no key in Secret " + w.ns + "/sops-keys opens it")
	w.wantImage("v1")
}

// served runs `gitrollout run` with the log level debug. It returns a map from each path to its response. The key "the log of run" has the
// log.
func (w *loopWorld) served(paths ...string) map[string]string {
	w.Helper()
	var addresses []string
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(w, err)
		addresses = append(addresses, l.Addr().String())
		_ = l.Close()
	}
	token, digest := dashboard.NewToken()
	rights := filepath.Join(w.TempDir(), "access.yaml")
	must(w, os.WriteFile(rights, []byte("apiVersion: gitrollout.dev/v1alpha1\nkind: DashboardAccess\n"+
		`people: [{name: Ann, email: ann@example.com, token: "`+digest+`", apps: ["*"], verbs: [hold]}]`), 0o600))
	ctx, stop := context.WithCancel(w.Context())
	log, ended := &safeBuffer{}, make(chan int)
	go func() {
		ended <- run(ctx, []string{"run", "--repo", w.server.URL, "--cluster", "test", "--kubeconfig", w.api.kubeconfig,
			"--namespaces", w.ns, "--interval", "1s", "--log-level", "debug", "--metrics-address", addresses[0],
			"--dashboard-address", addresses[1], "--dashboard-actions", "--dashboard-tokens", rights}, strings.NewReader(""), log, log)
	}()
	got := map[string]string{}
	for _, path := range paths {
		address := addresses[1]
		if path == "/metrics" {
			address = addresses[0]
		}
		await(w, path+" is served", func() bool {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
			must(w, err)
			request.Header.Set("Authorization", "Bearer "+token)
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				return false
			}
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			got[path] = string(body)
			return err == nil && response.StatusCode == http.StatusOK
		})
	}
	stop()
	if code := <-ended; code != 0 {
		w.Errorf("run ends with %d: %s", code, log)
	}
	got["the log of run"] = log.String()
	return got
}

// TestDecryptedValuesStayInside releases an app with encrypted files, aborts a release, and pushes invalid versions. No decrypted value may
// be in the output of a command, a log, a pushed commit, a page or a metric.
func TestDecryptedValuesStayInside(t *testing.T) {
	tier.All(t)
	key := sopstest.Age(t)
	w := newEncryptedWorld(t)
	w.keep(w.ns, key)
	first := w.push("v1", w.encrypted("v1", "Planted1x9Zq", key))
	p := w.startHealthy()
	s := p.awaitPaused(w.push("v2", w.encrypted("v2", "Planted2x9Zq", key)))
	search := func(where, text string) {
		t.Helper()
		for _, planted := range []string{
			"Planted", base64.StdEncoding.EncodeToString([]byte("Planted1x9Zq"))[:8],
			strings.TrimSpace(strings.Split(key.Secret, "\n")[0]),
		} {
			if at := strings.Index(text, planted); at >= 0 {
				t.Errorf("%s: …%s…", where, text[max(0, at-200):min(len(text), at+60)])
			}
		}
	}
	all := func() {
		t.Helper()
		kubeconfig := "--kubeconfig=" + w.api.kubeconfig
		for _, args := range [][]string{
			{"get"}, {"get", w.app, "-o", "json"}, {"explain", w.app}, {"history", w.app}, {"render", w.app},
			{"render", w.app, "--with-state", kubeconfig}, {"validate"}, {"plan", "--base", first},
			{"doctor", "--no-push", kubeconfig}, {"diff", kubeconfig},
		} {
			search(strings.Join(args, " "), w.said(args...))
		}
	}
	all()
	w.decide(s.Release.Hash, "abort", "")
	p.await("back", func(s rollout.State) bool { return s.Phase == rollout.Degraded && w.image() == "v1" })
	files3 := w.encrypted("v3", "Planted3x9Zq", key)
	for name, files := range map[string]map[string]string{
		"no Secret": {"secret.yaml": manifest(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\n"+
			"data: {password: Planted4x9Zq}\n", key)},
		"refused": {"secret.yaml": manifest(t, plainSecret("type: kubernetes.io/dockerconfigjson\n"+
			"stringData: {.dockerconfigjson: \"{Planted5x9Zq\"}"), key)},
		"no base64": {"secret.yaml": manifest(t, plainSecret("data: {password: \"!Planted6x9Zq!\"}"), key)},
		"a line of no env": {
			"kustomization.yaml": "secretGenerator: [{name: made, envs: [made]}]\n",
			"made":               whole(t, "made", "Planted7 x9Zq\n", key),
		},
		"broken YAML": {
			"kustomization.yaml": "resources: [made.bin]\n", "made.bin": whole(t, "made.bin", "a: [Planted8x9Zq\n", key),
		},
		"a changed file": {"secret.yaml": strings.Replace(files3["secret.yaml"], "kind: Secret", "kind: Secret\ntype: Opaque", 1)},
		"a key too odd":  {"secret.yaml": manifest(t, plainSecret("stringData: {\"a b\": Planted9x9Zq}"), key)},
	} {
		w.push("good", w.encrypted("v1", "Planted1x9Zq", key))
		p.await("not held", notHeld)
		w.push(name, with(w.encrypted("v3", "Planted3x9Zq", key), files))
		held := p.await(name+" is held", isHeld)
		t.Logf("%s: %s", name, held.Held.Message)
		all()
	}
	api := "/api/v1/apps"
	for where, text := range w.served("/metrics", "/", "/plain", "/apps/"+w.app, api, api+"/"+w.app, api+"/"+w.app+"/diff",
		api+"/"+w.app+"/history") {
		search(where, text)
	}
	search("the log", w.log.String())
	for _, id := range strings.Fields(w.repo.InBare("rev-list", "--objects", "--all", "--not", "main", "--no-object-names")) {
		if kind := w.repo.InBare("cat-file", "-t", id); strings.TrimSpace(kind) != "tree" {
			search("the pushed objects", w.repo.InBare("cat-file", "-p", id))
		}
	}
}
