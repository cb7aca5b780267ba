package doctor

import (
	"context"
	"errors"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/render/sops"
	"gitrollout.dev/gitrollout/rollout"
)

// AppOf returns the inputs for an app's checks.
func AppOf(b *source.Branch, app rollout.App, s rollout.State, r *rollout.Render) App {
	a := App{Name: app.Name, Known: s.Source != "", Has: s.Inventory, Render: r, Encrypted: map[string][]byte{}}
	a.Restarts = s.Stable != nil && b.Promotion(s.Named(app)).File.Says(rollout.Restart, s.Stable.Hash)
	if r != nil {
		for _, file := range r.Unopened {
			data, found, err := source.ReadFile(b.Tree, file)
			if a.unread = errors.Join(a.unread, err); found {
				a.Encrypted[file] = data
			}
		}
	}
	return a
}

func (c Cluster) examineKeys(ctx context.Context, e *Examination, client clients) {
	for _, app := range c.Apps {
		if app.unread != nil {
			e.Add("cluster.keys", Problem, "", "encrypted files of %s: %v", app.Name, app.unread)
			continue
		}
		if len(app.Encrypted) == 0 {
			continue
		}
		namespace, name := app.Render.App.Namespace, app.Render.App.Decryption
		secret := namespace + "/" + name
		s, err := client.core.Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			e.Add("cluster.keys", Problem, "create it, or allow reading it", "encrypted files of %s: Secret %s: %v", app.Name,
				secret, err)
			continue
		}
		data := map[string]string{}
		for entry, value := range s.Data {
			data[entry] = string(value)
		}
		keys, err := sops.ReadKeys(data)
		if err != nil {
			e.Add("cluster.keys", Problem, "put keys there: kubectl create secret generic --from-file=age.agekey",
				"encrypted files of %s: Secret %s %v", app.Name, secret, err)
			continue
		}
		opened := 0
		for _, file := range slices.Sorted(maps.Keys(app.Encrypted)) {
			var wrong *sops.Error
			if errors.As(try(keys, file, secret, app.Encrypted[file]), &wrong) {
				e.Add("cluster.keys", Problem, wrong.Fix, "%s of %s %s", file, app.Name, wrong.Msg)
				continue
			}
			opened++
		}
		if opened > 0 {
			e.Add("cluster.keys", Healthy, "", "Secret %s opens %d of %d encrypted files of %s", secret, opened,
				len(app.Encrypted), app.Name)
		}
	}
}

func try(keys *sops.Keys, name, secret string, content []byte) error {
	file, err := sops.Read(name, content)
	if err != nil || file == nil {
		return err
	}
	key, err := keys.Unlock(file.Locks)
	if err != nil {
		return file.NoKey(name, secret)
	}
	_, err = file.Open(key)
	return err
}
