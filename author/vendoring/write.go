package vendoring

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"

	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/rollout"
)

// staging holds new files before write moves them, so that a full disk changes nothing.
const staging = ".vendor-new"

// write moves contents, then writes the lock. An interrupted update can be repeated.
func write(dir *os.Root, pins []Pin, contents []files, locked []Pin) (said []string, err error) {
	defer func() { err = errors.Join(err, dir.RemoveAll(staging)) }()
	fresh, err := stage(dir, pins, contents)
	if err != nil {
		return nil, fmt.Errorf("nothing was changed: %w", err)
	}
	away := func(at string, i int) error {
		if err := dir.Rename(at, staged(i)+".old"); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	for _, i := range fresh {
		if err := away(pins[i].Into, i); err != nil {
			return nil, err
		}
		if err := dir.Rename(staged(i), pins[i].Into); err != nil {
			return nil, err
		}
	}
	for i, l := range locked {
		if slices.ContainsFunc(pins, func(p Pin) bool { return p.Into == l.Into }) {
			continue
		}
		if err := away(l.Into, len(pins)+i); err != nil {
			return nil, err
		}
	}
	for i, p := range pins {
		said = append(said, fmt.Sprintf("%s  %s, %d files", p.Into, p.names(), len(contents[i])))
	}
	return said, dir.Rename(path.Join(staging, rollout.VendorLock), rollout.VendorLock)
}

func staged(i int) string { return path.Join(staging, strconv.Itoa(i)) }

func stage(dir *os.Root, pins []Pin, contents []files) (fresh []int, err error) {
	if err := dir.RemoveAll(staging); err != nil {
		return nil, err
	}
	if err := dir.Mkdir(staging, 0o755); err != nil {
		return nil, err
	}
	for i, p := range pins {
		if isTwice := slices.ContainsFunc(pins[:i], func(o Pin) bool { return o.Into == p.Into }); isTwice || p.isIn(dir) {
			continue
		}
		if err := dir.MkdirAll(path.Dir(p.Into), 0o755); err != nil {
			return nil, fmt.Errorf("%s: %w", p.Into, err)
		}
		for name, content := range contents[i] {
			at := path.Join(staged(i), name)
			if err := dir.MkdirAll(path.Dir(at), 0o755); err != nil {
				return nil, err
			}
			if err := dir.WriteFile(at, content, 0o644); err != nil {
				return nil, err
			}
		}
		fresh = append(fresh, i)
	}
	data, err := yaml.Marshal(lockFile{rollout.APIVersion, lockKind, pins})
	if err != nil {
		return nil, err
	}
	return fresh, dir.WriteFile(path.Join(staging, rollout.VendorLock), data, 0o644)
}
