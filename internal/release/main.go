// Command gitrollout-release makes a release of gitrollout from a working copy. The Go toolchain is the only build
// tool. The release has archives, an OCI image, manifests, a chart, package manifests, SBOMs, and checksums. The
// subcommand "push" sends the image to a registry. The Makefile's targets "release" and "push" call this command;
// internal/e2e checks the results.
//
// Equal sources result in equal bytes, because all timestamps in archives are the commit's time.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "gitrollout-release:", err)
		os.Exit(1)
	}
}

const usage = `usage: gitrollout-release build -version v0.2.0 [flags]
       gitrollout-release push IMAGE.tar REGISTRY/REPOSITORY:TAG`

func run(ctx context.Context, args []string, out io.Writer) error {
	switch {
	case len(args) > 0 && args[0] == "build":
		r, err := parse(args[1:])
		if err != nil {
			return err
		}
		return r.build(ctx, out)
	case len(args) == 3 && args[0] == "push":
		return push(ctx, args[1], args[2], out)
	}
	return errors.New(usage)
}

// release has the inputs and outputs of a build.
type release struct {
	source    string // the repository's root
	out       string // the folder for the files
	version   string // "v0.2.0"
	image     string // the repository of the image in the manifests: "registry.example.com/gitrollout"
	downloads string // the archives' future address, for krew and Homebrew: "https://downloads.example.com/gitrollout/v0.2.0"
	key       string // a file with an SSH key that signs the checksums; "" to sign nothing
	commit    string // "" if unknown
	date      time.Time
	platforms []platform
}

// The project's page, and the description of the program in lists of packages.
const (
	homepage    = "https://gitrollout.dev/gitrollout"
	description = "Progressive delivery from a Git repository"
)

// platform is a target of the build.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

var semantic = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)

// parse reads the flags of the subcommand build.
func parse(args []string) (*release, error) {
	r := &release{}
	flags := flag.NewFlagSet("build", flag.ContinueOnError)
	flags.StringVar(&r.source, "source", ".", "the repository's root")
	flags.StringVar(&r.out, "out", "dist", "the folder for the files, empty or new")
	flags.StringVar(&r.version, "version", "", "the version, such as v0.2.0")
	flags.StringVar(&r.image, "image", "localhost/gitrollout", "the image's repository, which the manifests name")
	flags.StringVar(&r.downloads, "downloads", "", "URL below which the archives will be, for krew's manifest and Homebrew's formula")
	flags.StringVar(&r.key, "key", "", "a file with an SSH key that signs the checksums (default: no signature)")
	platforms := flags.String("platforms", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64", "the platforms to build for")
	date := flags.String("date", "", "the time of every file, in seconds since 1970 (default: the commit's time)")
	flags.StringVar(&r.commit, "commit", "", "the commit to build (default: the working copy's HEAD)")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if !semantic.MatchString(r.version) {
		return nil, fmt.Errorf("-version %q is none; say v0.2.0", r.version)
	}
	r.downloads = cmp.Or(r.downloads, "https://downloads.example.com/gitrollout/"+r.version)
	for _, p := range strings.Split(*platforms, ",") {
		system, arch, ok := strings.Cut(p, "/")
		if !ok {
			return nil, fmt.Errorf("-platforms: %q is not a platform such as linux/amd64", p)
		}
		r.platforms = append(r.platforms, platform{system, arch})
	}
	return r, r.dated(*date)
}

// dated sets the commit and the date of the release. By default, commit and date come from the working copy.
func (r *release) dated(date string) error {
	r.commit = cmp.Or(r.commit, r.git("rev-parse", "HEAD"))
	date = cmp.Or(date, r.git("log", "-1", "--format=%ct"))
	seconds, err := strconv.ParseInt(date, 10, 64)
	if err != nil {
		return fmt.Errorf("-date %q: want the seconds since 1970; only a build in a clone has a default", date)
	}
	r.date = time.Unix(seconds, 0).UTC()
	return nil
}

// git runs git in the working copy. It returns "" if git fails, for example without a repository.
func (r *release) git(args ...string) string {
	out, err := exec.Command("git", append([]string{"-C", r.source}, args...)...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// build makes all files of a release.
func (r *release) build(ctx context.Context, out io.Writer) error {
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	if old, err := os.ReadDir(r.out); err != nil || len(old) > 0 { // the checksums would include old files
		return errors.Join(err, fmt.Errorf("%s is not empty", r.out))
	}
	work, err := os.MkdirTemp("", "gitrollout-release")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	programs := map[platform]string{}
	for _, p := range r.platforms {
		began := time.Now()
		programs[p] = filepath.Join(work, p.os+"_"+p.arch)
		if err := r.compile(ctx, p, programs[p]); err != nil {
			return fmt.Errorf("build for %s: %w", p, err)
		}
		info, err := os.Stat(programs[p])
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%-14s %5.1f MB in %s\n", p, float64(info.Size())/1e6, time.Since(began).Round(time.Second))
	}
	for _, make := range []func(map[platform]string) error{
		// writeSums comes last, because it reads the files of all other steps.
		r.archives, r.writeImage, r.writeManifests, r.writeChart, r.writeKrew, r.writeFormula, r.writeSBOMs, r.writeSums,
	} {
		if err := make(programs); err != nil {
			return err
		}
	}
	return nil
}

// compile builds the program so that its bytes depend only on the release and the toolchain.
func (r *release) compile(ctx context.Context, p platform, to string) error {
	to, err := filepath.Abs(to)
	if err != nil {
		return err
	}
	stamp := "-s -w -buildid= -X main.released=" + r.version + " -X main.commit=" + r.commit
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", stamp, "-o", to, "./cmd/gitrollout")
	cmd.Dir = r.source
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOOS="+p.os, "GOARCH="+p.arch)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}
