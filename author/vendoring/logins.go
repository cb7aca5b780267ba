package vendoring

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

var hubHosts = map[string]bool{"index.docker.io": true, "registry-1.docker.io": true, "docker.io": true}

// Logins returns the credentials of "docker login" and "helm registry login". It runs credential helpers.
func Logins(home string, getenv func(string) string) func(host string) (user, password string) {
	folder := cmp.Or(getenv("DOCKER_CONFIG"), filepath.Join(home, ".docker"))
	known, helpers := map[string]string{}, map[string]string{}
	ofHelm := filepath.Join(home, ".config/helm/registry/config.json")
	for _, file := range []string{ofHelm, filepath.Join(folder, "config.json")} {
		var config struct {
			Auths map[string]struct {
				Auth string `json:"auth"`
			} `json:"auths"`
			CredHelpers map[string]string `json:"credHelpers"`
			CredsStore  string            `json:"credsStore"`
		}
		data, err := os.ReadFile(file)
		if err != nil || json.Unmarshal(data, &config) != nil {
			continue
		}
		for host, entry := range config.Auths {
			if pair, err := base64.StdEncoding.DecodeString(entry.Auth); err == nil && len(pair) > 0 {
				known[bare(host)] = string(pair)
			}
		}
		for host, program := range config.CredHelpers {
			helpers[bare(host)] = program
		}
		helpers[""] = cmp.Or(config.CredsStore, helpers[""])
	}
	return func(host string) (user, password string) {
		host = bare(host)
		if program := cmp.Or(helpers[host], helpers[""]); program != "" {
			if user, password = askHelper(program, host); user != "" {
				return user, password
			}
		}
		user, password, _ = strings.Cut(known[host], ":")
		return user, password
	}
}

func bare(name string) string {
	host, _, _ := strings.Cut(strings.TrimPrefix(name, "https://"), "/")
	if hubHosts[host] {
		return "index.docker.io"
	}
	return host
}

var helperName = regexp.MustCompile(`^[A-Za-z0-9][\w.-]*$`)

// askHelper ignores identity tokens.
func askHelper(program, host string) (user, password string) {
	if !helperName.MatchString(program) {
		return "", ""
	}
	if host == "index.docker.io" {
		host = "https://index.docker.io/v1/" // docker's name for Docker Hub's credentials
	}
	ctx, end := context.WithTimeout(context.Background(), 30*time.Second)
	defer end()
	cmd := exec.CommandContext(ctx, "docker-credential-"+program, "get")
	cmd.Stdin = strings.NewReader(host + "\n")
	out, err := cmd.Output()
	var said struct{ Username, Secret string }
	if err != nil || json.Unmarshal(out, &said) != nil || said.Username == "<token>" {
		return "", ""
	}
	return said.Username, said.Secret
}
