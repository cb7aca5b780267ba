package rollout

import (
	"maps"
	"slices"
	"strings"
)

// Credential names the place of a secret outside Git. Exactly one field of Secret, Env and File is set.
type Credential struct {
	Secret    SecretRef // in the cluster
	Namespace string    // default: the reconciler's namespace
	Env       string    // variable of the reconciler's environment
	File      string    // file in the folder GITROLLOUT_NOTIFY_DIR
}

// EnvPrefix begins each Credential.Env, because other variables may hold credentials for Git.
const EnvPrefix = "GITROLLOUT_NOTIFY_"

type credentialFile struct {
	SecretRef *struct {
		Name      string `json:"name"`
		Key       string `json:"key"`
		Namespace string `json:"namespace"`
	} `json:"secretRef"`
	Env  string `json:"env"`
	File string `json:"file"`
}

const nameSecret = "name a Secret: {secretRef: {name: notifications, key: slack}}"

// ReadValue reads a credential. Errors do not contain the secret.
func (c *credentialFile) ReadValue(raw any) error {
	if _, ok := raw.(map[string]any); !ok {
		return Invalidf("", "", "is in plain text, and the configuration is in Git").WithFix(nameSecret)
	}
	type plain credentialFile
	if wrong := Read("", raw, (*plain)(c)); wrong != nil {
		return wrong
	}
	return nil
}

func (s *section) credential(name string, raw credentialFile) (c Credential, err error) {
	ways := 0
	if r := raw.SecretRef; r != nil {
		ways++
		c.Secret, c.Namespace = SecretRef{Name: r.Name, Key: r.Key}, r.Namespace
		if r.Name == "" || r.Key == "" {
			return c, s.invalid(name+".secretRef", nameSecret, "needs a name and a key")
		}
	}
	if c.Env = raw.Env; raw.Env != "" {
		ways++
		if !strings.HasPrefix(raw.Env, EnvPrefix) {
			return c, s.invalid(name+".env", "give the reconciler a variable "+EnvPrefix+"SLACK, or the like",
				"%q does not begin with %s, the prefix for notifications", raw.Env, EnvPrefix)
		}
	}
	if c.File = raw.File; raw.File != "" {
		ways++
		if strings.ContainsAny(raw.File, `/\`) || raw.File == ".." || raw.File == "." {
			return c, s.invalid(name+".file", "name a file in the folder $"+EnvPrefix+"DIR, without a path",
				"%q is not a file's name", raw.File)
		}
	}
	if ways != 1 {
		return c, s.invalid(name, nameSecret, "needs exactly one of secretRef, env and file")
	}
	return c, nil
}

func (s *section) headers(given map[string]credentialFile) (all map[string]Credential, err error) {
	all = map[string]Credential{}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if all[name], err = s.credential("headers."+name, given[name]); err != nil {
			return nil, err
		}
	}
	return all, nil
}
