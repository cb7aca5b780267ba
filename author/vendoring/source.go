package vendoring

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"

	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/rollout"
)

// Pin is one entry of vendor.lock.
type Pin struct {
	Wants   string `json:"wants"`             // the source in vendor.yaml
	Into    string `json:"into"`              // the folder, which has only this source's files
	Version string `json:"version,omitempty"` // a chart's version, or an artifact's tag
	Commit  string `json:"commit,omitempty"`
	Digest  string `json:"digest,omitempty"` // of a chart archive or OCI manifest
	Signed  string `json:"signed,omitempty"` // the key's fingerprint, if provenance is required
	Tree    string `json:"tree"`             // digest of the files in Into
}

func (p Pin) is(other Pin) bool {
	return p.Version == other.Version && p.Commit == other.Commit && p.Digest == other.Digest && p.Tree == other.Tree
}

func (g *Getter) fetch(
	ctx context.Context, dir *os.Root, s rollout.VendorSource, locked *Pin,
) (p Pin, all files, err error) {
	var keys signers
	if s.Chart != nil {
		if keys, err = readSigners(dir, s.Chart.Provenance); err != nil {
			return p, nil, fmt.Errorf("%s: %w", s.Wants(), err)
		}
	}
	switch {
	case s.Git != nil:
		p.Commit, all, err = fromGit(ctx, *s.Git)
	case s.OCI != nil:
		wants := cmp.Or(s.OCI.Tag, s.OCI.Semver)
		p, all, err = g.artifact(ctx, s.OCI.URL, wants, s.OCI.Tag != "", locked, nil)
	case strings.HasPrefix(s.Chart.Repo, "oci://"):
		at := strings.TrimSuffix(s.Chart.Repo, "/") + "/" + s.Chart.Name
		p, all, err = g.artifact(ctx, at, s.Chart.Version, false, locked, keys)
	default:
		p, all, err = g.chart(ctx, *s.Chart, locked, keys)
	}
	p.Into = s.Into
	if err == nil && s.Chart != nil {
		err = onlyChart(all, s.Chart.Name, p.Version)
		p.Into = path.Join(s.Into, s.Chart.Name+"-"+p.Version) // kustomize's helmCharts expects this name
		if s.Chart.Flat {
			p.Into, all = path.Join(s.Into, s.Chart.Name), all.below(s.Chart.Name)
		}
	}
	if err != nil {
		return p, nil, fmt.Errorf("%s: %w", s.Wants(), err)
	}
	p.Wants, p.Tree = s.Wants(), all.tree()
	return p, all, nil
}

func onlyChart(all files, name, version string) error {
	var head struct{ Name, Version string }
	if err := yaml.Unmarshal(all[name+"/Chart.yaml"], &head); err != nil || head.Name != name || head.Version != version {
		return fmt.Errorf("its archive does not have the chart %s %s", name, version)
	}
	if len(all.below(name)) != len(all) {
		return fmt.Errorf("its archive has files outside of the folder %s", name)
	}
	return nil
}

func newest(versions []string, wants string, locked *Pin) (string, error) {
	if locked != nil {
		if !slices.Contains(versions, locked.Version) {
			return "", fmt.Errorf("version %s, which is locked, is not there any more", locked.Version)
		}
		return locked.Version, nil
	}
	if slices.Contains(versions, wants) {
		return wants, nil
	}
	if !chartutil.IsCompatibleRange(wants+" || *", "1.0.0") {
		return "", fmt.Errorf("%q is neither a version nor a range of versions", wants)
	}
	best, text := (*version.Version)(nil), ""
	for _, one := range versions {
		if !chartutil.IsCompatibleRange(wants, one) {
			continue
		}
		v, err := version.Parse(one)
		if err != nil {
			v, err = version.Parse(one + ".0") // Helm reads "1" as 1.0.0
		}
		if err == nil && (best == nil || v.GreaterThan(best)) {
			best, text = v, one
		}
	}
	if best == nil {
		return "", fmt.Errorf("none of its %d versions is %s", len(versions), wants)
	}
	return text, nil
}

type indexed struct {
	Version string   `json:"version"`
	URLs    []string `json:"urls"`
	Digest  string   `json:"digest"`
}

func (g *Getter) indexed(ctx context.Context, repo *url.URL, c rollout.VendorChart, locked *Pin) (indexed, error) {
	a, err := g.found(ctx, repo.JoinPath("index.yaml"), g.basic(repo.Host))
	if err != nil {
		return indexed{}, err
	}
	var index struct {
		Entries map[string][]indexed `json:"entries"`
	}
	if err := yaml.Unmarshal(a.body, &index); err != nil {
		return indexed{}, fmt.Errorf("its index.yaml cannot be read: %w", err)
	}
	versions := rollout.Mapped(index.Entries[c.Name], func(e indexed) string { return e.Version })
	version, err := newest(versions, c.Version, locked)
	if err != nil {
		return indexed{}, err
	}
	e := index.Entries[c.Name][slices.Index(versions, version)]
	if len(e.URLs) == 0 {
		return indexed{}, fmt.Errorf("version %s has no address", version)
	}
	return e, nil
}

func (g *Getter) chart(ctx context.Context, c rollout.VendorChart, locked *Pin, keys signers) (Pin, files, error) {
	repo, err := url.Parse(strings.TrimSuffix(c.Repo, "/") + "/")
	if err != nil || repo.Host == "" {
		return Pin{}, nil, errors.New("the repository is not a URL")
	}
	e, err := g.indexed(ctx, repo, c, locked)
	if err != nil {
		return Pin{}, nil, err
	}
	at, err := repo.Parse(e.URLs[0])
	if err != nil {
		return Pin{}, nil, fmt.Errorf("version %s has an address that is not a URL", e.Version)
	}
	who := ""
	if at.Host == repo.Host {
		who = g.basic(repo.Host)
	}
	a, err := g.found(ctx, at, who)
	if err != nil {
		return Pin{}, nil, err
	}
	p := Pin{Version: e.Version, Digest: digest(a.body)}
	if e.Digest != "" && strings.TrimPrefix(e.Digest, "sha256:") != strings.TrimPrefix(p.Digest, "sha256:") {
		return p, nil, fmt.Errorf("the archive of version %s has the digest %s, but index.yaml says %s", e.Version,
			p.Digest, e.Digest)
	}
	if keys != nil {
		signed := *at
		signed.Path, signed.RawPath = at.Path+".prov", ""
		prov, err := g.found(ctx, &signed, who)
		if err == nil {
			p.Signed, err = keys.verify(a.body, path.Base(at.Path), prov.body)
		}
		if err != nil {
			return p, nil, err
		}
	}
	all, err := unzip(a.body)
	return p, all, err
}

func (g *Getter) found(ctx context.Context, at *url.URL, who string) (answer, error) {
	a, err := g.get(ctx, at.String(), who, "")
	if err == nil && a.status != http.StatusOK {
		err = refusal(at.Host+at.Path, a.status)
	}
	return a, err
}

func (g *Getter) artifact(
	ctx context.Context, address, wants string, isTag bool, locked *Pin, keys signers,
) (Pin, files, error) {
	at, err := url.Parse(address)
	if err != nil || at.Scheme != "oci" || at.Host == "" || len(at.Path) < 2 {
		return Pin{}, nil, errors.New("the address is not of the form oci://host/path")
	}
	token, base, tag := "", "/v2"+strings.TrimSuffix(at.Path, "/"), wants
	if !isTag {
		if tag, err = g.tagged(ctx, at.Host, base, wants, locked, &token); err != nil {
			return Pin{}, nil, err
		}
	}
	const accept = "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json"
	a, err := g.registry(ctx, at.Host, base+"/manifests/"+strings.ReplaceAll(tag, "+", "_"), accept, &token)
	if err != nil {
		return Pin{}, nil, err
	}
	p := Pin{Version: tag, Digest: digest(a.body)}
	var m struct {
		Layers []struct{ MediaType, Digest string } `json:"layers"`
	}
	if err := json.Unmarshal(a.body, &m); err != nil {
		return p, nil, fmt.Errorf("the manifest of %s cannot be read", tag)
	}
	layer := func(is func(mediaType string) bool) ([]byte, error) {
		for _, l := range m.Layers {
			if !is(l.MediaType) {
				continue
			}
			a, err := g.registry(ctx, at.Host, base+"/blobs/"+l.Digest, "", &token)
			if err != nil {
				return nil, err
			}
			if got := digest(a.body); got != l.Digest {
				return nil, fmt.Errorf("a layer of %s has the digest %s, but the manifest says %s", tag, got, l.Digest)
			}
			return a.body, nil
		}
		return nil, nil
	}
	isArchive := func(t string) bool { return strings.HasSuffix(t, "tar+gzip") || strings.HasSuffix(t, "tar.gzip") }
	archive, err := layer(isArchive)
	if err == nil && archive == nil {
		err = fmt.Errorf("%s has no layer that is a .tar.gz", tag)
	}
	if err == nil && keys != nil {
		var signed []byte
		if signed, err = layer(func(t string) bool { return t == provenanceType }); err == nil {
			p.Signed, err = keys.verify(archive, path.Base(at.Path)+"-"+tag+".tgz", signed)
		}
	}
	if err != nil {
		return p, nil, err
	}
	all, err := unzip(archive)
	return p, all, err
}

// tagged returns the version to fetch. A "+" in a version is written as "_" in the tag.
func (g *Getter) tagged(ctx context.Context, host, base, wants string, locked *Pin, token *string) (string, error) {
	var all []string
	next := base + "/tags/list?n=1000"
	for range 50 {
		a, err := g.registry(ctx, host, next, "", token)
		var page struct {
			Tags []string `json:"tags"`
		}
		if err == nil {
			err = json.Unmarshal(a.body, &page)
		}
		if err != nil {
			return "", err
		}
		all = append(all, rollout.Mapped(page.Tags, func(tag string) string { return strings.ReplaceAll(tag, "_", "+") })...)
		link, _, more := strings.Cut(a.header.Get("Link"), ">")
		to, err := url.Parse(strings.TrimPrefix(link, "<"))
		if !more || err != nil || !strings.HasPrefix(to.Path, base+"/") {
			break
		}
		next = to.RequestURI()
	}
	return newest(all, wants, locked)
}

// fromGit runs the git program, so that it uses the user's credentials.
func fromGit(ctx context.Context, s rollout.VendorGit) (commit string, all files, err error) {
	dir, err := os.MkdirTemp("", "gitrollout-vendor-")
	if err != nil {
		return "", nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	git := func(args ...string) (out string) {
		options := []string{"-C", dir, "-c", "core.autocrlf=false", "-c", "http.lowSpeedLimit=1",
			"-c", "http.lowSpeedTime=60"}
		if err == nil {
			out, err = runGit(ctx, options, []string{"GIT_ALLOW_PROTOCOL=https:ssh:http:git:file"}, args...)
		}
		return out
	}
	if strings.HasPrefix(s.Ref, "-") || strings.ContainsAny(s.Ref, ":+^*") {
		return "", nil, fmt.Errorf("%q is not a tag, branch or commit", s.Ref)
	}
	git("init", "-q", "--bare")
	git("fetch", "-q", "--depth=1", "--no-recurse-submodules", "--", s.URL, s.Ref)
	commit = strings.TrimSpace(git("rev-parse", "--verify", "FETCH_HEAD^{commit}"))
	archive := git("archive", "--format=tar", commit, "--", path.Clean(s.Path))
	if err != nil {
		return "", nil, err
	}
	all, err = untar(strings.NewReader(archive))
	if all = all.below(path.Clean(s.Path)); err == nil && len(all) == 0 {
		err = fmt.Errorf("commit %s has no folder %s", rollout.ShortID(commit), s.Path)
	}
	return commit, all, err
}

func runGit(ctx context.Context, options, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", slices.Concat(options, args)...)
	cmd.Env = append(append(os.Environ(), "GIT_TERMINAL_PROMPT=0"), env...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s: %w: %.300s", args[0], err, rollout.OneLine(said.String()))
	}
	return out.String(), nil
}
