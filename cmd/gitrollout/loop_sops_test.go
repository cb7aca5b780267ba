package main

import (
	"context"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/internal/sopstest"
	"gitrollout.dev/gitrollout/internal/tier"
	"gitrollout.dev/gitrollout/rollout"
)

// manifest and whole are sopstest's files without the word that a push replaces, since ciphertext may contain it.
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

// decrypting is an entry for apps whose keys are in a Secret.
const decrypting = "- path: apps/*\n  decryption: {provider: sops, secretRef: {name: sops-keys}}"

// encrypted is a version of the app with a Secret from a manifest and one from a generator, which the pods use.
func (w *loopWorld) encrypted(tag, value string, key sopstest.Key) map[string]string {
	w.Helper()
	files := version(tag, halfThenGate)
	return with(files, map[string]string{
		"kustomization.yaml": "resources: [app.yaml, service.yaml, rollout.yaml, secret.yaml]\nsecretGenerator: [{name: made, envs: [made.env]}]\n",
		"secret.yaml":        manifest(w, "apiVersion: v1\nkind: Secret\nmetadata: {name: plain}\nstringData: {password: "+value+"}\n", key),
		"made.env":           whole(w, "made.env", "PASSWORD="+value+"\n", key),
		"app.yaml":           strings.Replace(files["app.yaml"], "- {name: app,", "- {name: app, envFrom: [{secretRef: {name: made}}],", 1),
	})
}

// keep replaces the keys in the Secret of a namespace.
func (w *loopWorld) keep(namespace string, keys ...sopstest.Key) {
	w.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "sops-keys"}, StringData: map[string]string{}}
	for _, key := range keys {
		s.StringData[key.Name] = key.Secret
	}
	secrets := w.kube.Kube.CoreV1().Secrets(namespace)
	_ = secrets.Delete(w.Context(), s.Name, metav1.DeleteOptions{})
	if _, err := secrets.Create(w.Context(), s, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
}

// secretValues returns the values of the Secrets plain and made in the cluster, and the name of made.
func (w *loopWorld) secretValues() (plain, made, name string) {
	w.Helper()
	all, err := w.kube.Kube.CoreV1().Secrets(w.ns).List(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
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

// TestEncryptedSecrets holds an app without its key and writes nothing. With the key, of either type, the app is
// released, and needs no writes or renders at rest.
func TestEncryptedSecrets(t *testing.T) {
	for kind, make := range map[string]func(testing.TB) sopstest.Key{"age": sopstest.Age, "pgp": sopstest.PGP} {
		t.Run(kind, func(t *testing.T) {
			tier.Rows(t, "age")
			key := make(t)
			w := newLoopWorld(t, version("v0", halfThenGate))
			w.repo.CommitFiles("keys", map[string]string{configFile: w.config(decrypting)})
			w.push("v1", w.encrypted("v1", "hunter2-planted", key))
			p := w.start()
			s := p.awaitHeld("is encrypted by SOPS, and its keys cannot be had", "Secret "+w.ns+"/sops-keys")
			if s.Held.Reason != rollout.HeldUndecryptable || w.hasDeployment() {
				t.Fatalf("held %+v, written: %t", s.Held, w.hasDeployment())
			}
			w.keep(w.ns, sopstest.Age(t))
			p.awaitHeld("and no key in Secret " + w.ns + "/sops-keys opens it")
			w.keep(w.ns, key)
			p.awaitHealthy(w.repo.Head())
			if plain, made, _ := w.secretValues(); plain != "hunter2-planted" || made != "hunter2-planted" {
				t.Errorf("the Secrets hold %q and %q", plain, made)
			}
			w.wantNoWrites(p)
			for command, warns := range map[string]bool{"get": false, "explain": false, "validate": true} {
				if out := w.said(command); strings.Contains(out, "there is no key here") != warns {
					t.Errorf("%s of an app at rest: %s", command, out)
				}
			}
		})
	}
}

// said returns the output of a command that needs no cluster, for the app if the command takes one.
func (w *loopWorld) said(args ...string) string {
	w.Helper()
	if args[0] == "get" || args[0] == "explain" {
		args = append(args, w.app)
	}
	var out strings.Builder
	run(w.Context(), append(args, "--repo", w.server.URL, "--cluster", "test"), strings.NewReader(""), &out, &out)
	return out.String()
}

// TestDoctorTriesKeys decrypts each encrypted file of each app, and names those without a matching key, with the remedy
// and without values.
func TestDoctorTriesKeys(t *testing.T) {
	key, other := sopstest.Age(t), sopstest.Age(t)
	w := newLoopWorld(t, version("v0", halfThenGate))
	w.repo.CommitFiles("keys", map[string]string{configFile: w.config(decrypting)})
	files := w.encrypted("v1", "hunter2-planted", key)
	files["made.env"] = whole(w, "made.env", "PASSWORD=hunter2-planted\n", other)
	w.push("v1", files)
	look := func() string {
		return w.said("doctor", "--no-push", "--kubeconfig", w.api.kubeconfig)
	}
	want := func(wants ...string) {
		t.Helper()
		out := strings.Join(strings.Fields(look()), " ")
		for _, text := range wants {
			if !strings.Contains(out, text) || strings.Contains(out, "hunter2") || strings.Contains(out, "AGE-SECRET") {
				t.Errorf("no %q, or a secret, in\n%s", text, out)
			}
		}
	}
	want("problem cluster.keys encrypted files of "+w.app+": Secret "+w.ns+"/sops-keys: secrets \"sops-keys\" not found", "fix: create it, or allow reading it")
	w.keep(w.ns, sopstest.Key{Name: "README", Secret: "none"})
	want("Secret "+w.ns+"/sops-keys has no entry whose name ends in .agekey or .asc", "fix: put keys there")
	w.keep(w.ns, key)
	want("problem cluster.keys apps/"+w.app+"/made.env of "+w.app+" is encrypted by SOPS for age age1", "fix: put such a key there, or encrypt the file for one that is there",
		"ok cluster.keys Secret "+w.ns+"/sops-keys opens 1 of 2 encrypted files of "+w.app)
	files["secret.yaml"] = strings.Replace(files["secret.yaml"], "kind: Secret", "kind: Secret\ntype: Opaque", 1)
	files["made.env"] = whole(w, "made.env", "PASSWORD=hunter2-planted\n", key)
	w.push("changed", files)
	want("problem cluster.keys apps/" + w.app + "/secret.yaml of " + w.app + " was changed by something else than sops")
}

// wantNoWrites makes passes at rest: nothing is written, and nothing is rendered, which would need a key.
func (w *loopWorld) wantNoWrites(p *loopProcess) {
	w.Helper()
	_ = p.passes(3)
	before := p.renderer.Builds()
	p.wantNoWrites(5)
	if n := p.renderer.Builds() - before; n != 0 {
		w.Errorf("%d builds at rest", n)
	}
}

// TestAKeyIsForItsApps does not decrypt a file with another app's key, although the process reads both keys. An app
// whose account cannot read the Secret has no keys.
func TestAKeyIsForItsApps(t *testing.T) {
	key := sopstest.Age(t)
	w := newLoopWorld(t, version("v1", halfThenGate))
	theirs := w.kube.Namespace(t)
	w.namespaces = append(w.namespaces, theirs)
	w.keep(w.ns, key)
	w.keep(theirs, sopstest.Age(t))
	thief := "thief-" + w.ns
	config := w.config(strings.Replace(decrypting, "apps/*", "apps/"+w.app, 1)) + strings.Replace(decrypting, "apps/*", "apps/"+thief, 1) + "\n  namespace: " + theirs + "\n"
	w.repo.CommitFiles("keys", map[string]string{configFile: config})
	w.push("secrets", w.encrypted("v1", "hunter2-planted", key))
	w.pushAs(thief, "stolen", w.encrypted("v1", "hunter2-planted", key))
	p := w.start()
	p.await("released", func(s rollout.State) bool { return s.Phase == rollout.Healthy && s.Held == nil })
	s := p.awaitOf(thief, "held", func(s rollout.State) bool { return s.Held != nil })
	if s.Held.Reason != rollout.HeldUndecryptable || !strings.Contains(s.Held.Message, "no key in Secret "+theirs+"/sops-keys opens it") {
		t.Errorf("held %+v", s.Held)
	}
	w.repo.Pull()
	w.repo.CommitFiles("an account", map[string]string{configFile: strings.Replace(config, "  namespace: "+w.ns, "  serviceAccount: deployer\n  namespace: "+w.ns, 1)})
	w.grantDeployer()
	w.push("another value", w.encrypted("v1", "hunter3-planted", key))
	p.awaitHeld("its keys cannot be had", `User "system:serviceaccount:`+w.ns+`:deployer" cannot get resource "secrets"`)
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "keys"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "create", "patch", "delete"}}}}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "keys"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "keys"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "deployer", Namespace: w.ns}}}
	if _, err := w.kube.Kube.RbacV1().Roles(w.ns).Create(w.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.kube.Kube.RbacV1().RoleBindings(w.ns).Create(w.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.await("goes on", func(s rollout.State) bool { return s.Held == nil && s.Phase == rollout.Paused })
}

// newWorldWithoutAKey has v2 waiting at its gate. The key of v1, which is stable, was deleted, and the process that had
// read it has ended. Before are v1's files, and stable is its generated Secret.
func newWorldWithoutAKey(t *testing.T) (w *loopWorld, old sopstest.Key, before map[string]string, stable string) {
	t.Helper()
	old, next := sopstest.Age(t), sopstest.Age(t)
	w = newLoopWorld(t, version("v0", halfThenGate))
	w.repo.CommitFiles("keys", map[string]string{configFile: w.config(decrypting)})
	w.keep(w.ns, old)
	before = w.encrypted("v1", "hunter1-planted", old)
	first := w.push("v1", before)
	p := w.start()
	p.awaitHealthy(first)
	_, _, stable = w.secretValues()
	w.keep(w.ns, next)
	p.awaitPaused(w.push("v2", w.encrypted("v2", "hunter2-planted", next)))
	p.end()
	return w, old, before, stable
}

// TestARetreatWithoutItsKey aborts a release whose stable version's key is gone, in a process that never had it. The
// release continues until the abort, and the rollback uses the stable Secrets in the cluster.
func TestARetreatWithoutItsKey(t *testing.T) {
	w, _, _, stable := newWorldWithoutAKey(t)
	p := w.start()
	if err := p.passes(5); err != nil {
		t.Errorf("a process that has never had the old key: %v", err)
	}
	s := w.state()
	if s.Phase != rollout.Paused || s.Held != nil {
		t.Fatalf("it is %s, held %+v", s.Phase, s.Held)
	}
	w.decide(s.Release.Hash, "abort", "")
	p.await("back", func(s rollout.State) bool { return s.Phase == rollout.Degraded && w.image() == "v1" })
	if err := p.passes(5); err != nil {
		t.Errorf("after the retreat: %v", err)
	}
	if from := w.deployment().Spec.Template.Spec.Containers[0].EnvFrom; len(from) != 1 || from[0].SecretRef.Name != stable {
		t.Errorf("the pods have %+v, want %s", from, stable)
	}
	if plain, made, _ := w.secretValues(); !strings.Contains(made, "hunter1-planted") || plain != "hunter2-planted" {
		t.Errorf("the Secrets hold %q and %q", plain, made)
	}
}

// TestARevertWithoutItsKey reverts a release whose stable version's key is gone, in a process that never had it. The
// rollback needs no key, but another commit with the old key is held.
func TestARevertWithoutItsKey(t *testing.T) {
	w, old, before, _ := newWorldWithoutAKey(t)
	p := w.start()
	w.push("v1 again", before)
	p.await("back", func(s rollout.State) bool { return s.Release == nil && w.image() == "v1" })
	w.push("v3, for the key that has gone", w.encrypted("v3", "hunter3-planted", old))
	p.awaitHeld("no key in Secret " + w.ns + "/sops-keys opens it")
	if got := w.image(); got != "v1" {
		t.Errorf("%s serves", got)
	}
}

// served returns a process's pages, metrics and debug log.
func (w *loopWorld) served(paths ...string) map[string]string {
	w.Helper()
	var addresses []string
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			w.Fatal(err)
		}
		addresses = append(addresses, l.Addr().String())
		_ = l.Close()
	}
	ctx, stop := context.WithCancel(w.Context())
	log, ended := &safeBuffer{}, make(chan int)
	go func() {
		ended <- run(ctx, []string{"run", "--repo", w.server.URL, "--cluster", "test", "--kubeconfig", w.api.kubeconfig, "--namespaces", w.ns, "--interval", "1s", "--log-level", "debug",
			"--metrics-address", addresses[0], "--dashboard-address", addresses[1]}, strings.NewReader(""), log, log)
	}()
	got := map[string]string{}
	for _, path := range paths {
		address := addresses[1]
		if path == "/metrics" {
			address = addresses[0]
		}
		await(w, path+" is served", func() bool {
			response, err := http.Get("http://" + address + path)
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

// TestDecryptedValuesStayInside releases and breaks an app with encrypted files, with and without the key. It looks for
// their values in all logs, records, proposals, pages and metrics.
func TestDecryptedValuesStayInside(t *testing.T) {
	tier.All(t)
	key := sopstest.Age(t)
	w := newLoopWorld(t, version("v0", halfThenGate))
	w.repo.CommitFiles("keys", map[string]string{configFile: w.config(decrypting)})
	w.keep(w.ns, key)
	first := w.push("v1", w.encrypted("v1", "Planted1x9Zq", key))
	p := w.start()
	p.awaitHealthy(first)
	second := w.push("v2", w.encrypted("v2", "Planted2x9Zq", key))
	s := p.awaitPaused(second)
	search := func(where, text string) {
		t.Helper()
		for _, planted := range []string{"Planted", base64.StdEncoding.EncodeToString([]byte("Planted1x9Zq"))[:8], strings.TrimSpace(strings.Split(key.Secret, "\n")[0])} {
			if at := strings.Index(text, planted); at >= 0 {
				t.Errorf("%s: …%s…", where, text[max(0, at-200):min(len(text), at+60)])
			}
		}
	}
	all := func() {
		t.Helper()
		for _, args := range [][]string{{"get"}, {"get", w.app, "-o", "json"}, {"explain", w.app}, {"history", w.app}, {"render", w.app}, {"render", w.app, "--with-state"}, {"validate"}, {"plan", "--base", first}, {"doctor", "--no-push"}, {"diff"}} {
			if args[0] == "diff" || args[0] == "doctor" || args[0] == "render" && len(args) > 2 {
				args = append(args, "--kubeconfig", w.api.kubeconfig)
			}
			var out strings.Builder
			run(w.Context(), append(args, "--repo", w.server.URL, "--cluster", "test"), strings.NewReader(""), &out, &out)
			search(strings.Join(args, " "), out.String())
		}
	}
	all()
	w.decide(s.Release.Hash, "abort", "")
	p.await("back", func(s rollout.State) bool { return s.Phase == rollout.Degraded && w.image() == "v1" })
	files3 := w.encrypted("v3", "Planted3x9Zq", key)
	for name, files := range map[string]map[string]string{
		"no Secret":        {"secret.yaml": manifest(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\ndata: {password: Planted4x9Zq}\n", key)},
		"refused":          {"secret.yaml": manifest(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: plain}\ntype: kubernetes.io/dockerconfigjson\nstringData: {.dockerconfigjson: \"{Planted5x9Zq\"}\n", key)},
		"no base64":        {"secret.yaml": manifest(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: plain}\ndata: {password: \"!Planted6x9Zq!\"}\n", key)},
		"a line of no env": {"kustomization.yaml": "secretGenerator: [{name: made, envs: [made]}]\n", "made": whole(t, "made", "Planted7 x9Zq\n", key)},
		"broken YAML":      {"kustomization.yaml": "resources: [made.bin]\n", "made.bin": whole(t, "made.bin", "a: [Planted8x9Zq\n", key)},
		"a changed file":   {"secret.yaml": strings.Replace(files3["secret.yaml"], "kind: Secret", "kind: Secret\ntype: Opaque", 1)},
		"a key too odd":    {"secret.yaml": manifest(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: plain}\nstringData: {\"a b\": Planted9x9Zq}\n", key)},
	} {
		w.push("good", w.encrypted("v1", "Planted1x9Zq", key))
		p.await("not held", func(s rollout.State) bool { return s.Held == nil })
		w.push(name, with(w.encrypted("v3", "Planted3x9Zq", key), files))
		held := p.await(name+" is held", func(s rollout.State) bool { return s.Held != nil })
		t.Logf("%s: %s", name, held.Held.Message)
		all()
	}
	for where, text := range w.served("/metrics", "/", "/plain", "/apps/"+w.app, "/api/v1/apps", "/api/v1/apps/"+w.app, "/api/v1/apps/"+w.app+"/diff", "/api/v1/apps/"+w.app+"/history") {
		search(where, text)
	}
	search("the log", w.log.String())
	for _, id := range strings.Fields(w.repo.InBare("rev-list", "--objects", "--all", "--not", "main", "--no-object-names")) {
		if kind := w.repo.InBare("cat-file", "-t", id); strings.TrimSpace(kind) != "tree" {
			search("the pushed objects", w.repo.InBare("cat-file", "-p", id))
		}
	}
}
