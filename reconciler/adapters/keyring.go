package adapters

import (
	"context"
	"fmt"
	"sync"
	"time"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/render/sops"
	"gitrollout.dev/gitrollout/rollout"
)

// Keyring reads an app's decryption keys from the app's Secret, as the app's service account, so that RBAC protects
// other apps' keys.
type Keyring struct {
	App    func(name string) rollout.App // with the settings of the newest commit
	Client func() *cluster.Client
	As     func(ctx context.Context, app rollout.App) context.Context
	Now    func() time.Time

	known sync.Map
}

type heldKeys struct {
	secret string
	until  time.Time
	keys   *sops.Keys
	err    error
}

const keysFor = 5 * time.Second

// Unlock is the callback of render.InProcess. gitrollout records Unlock's errors in Git, so equal failures must have
// equal texts.
func (k *Keyring) Unlock(app rollout.App, locks []sops.Lock) ([]byte, error) {
	keys, err := k.of(app)
	if err != nil {
		return nil, err
	}
	return keys.Unlock(locks)
}

func (k *Keyring) of(app rollout.App) (*sops.Keys, error) {
	now := k.App(app.Name) // app may have an older entry without the service account
	known, _ := k.known.Load(app.Name)
	held, _ := known.(heldKeys)
	secret := now.Namespace + "/" + now.Decryption + " " + now.ServiceAccount
	if held.secret == secret && k.Now().Before(held.until) {
		return held.keys, held.err
	}
	held = heldKeys{secret: secret}
	held.keys, held.err = k.read(now)
	held.until = k.Now().Add(keysFor)
	k.known.Store(app.Name, held)
	return held.keys, held.err
}

func (k *Keyring) read(app rollout.App) (*sops.Keys, error) {
	ctx := k.As(context.Background(), app)
	data, err := k.Client().SecretData(ctx, app.Namespace, app.Decryption, "")
	var keys *sops.Keys
	if err == nil {
		if keys, err = sops.ReadKeys(data); err != nil {
			err = fmt.Errorf("Secret %s/%s %w", app.Namespace, app.Decryption, err)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("is encrypted with SOPS, and its keys cannot be read: %w", err)
	}
	return keys, nil
}
