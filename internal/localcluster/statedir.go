package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// stateDir is the folder to which a cluster writes.
type stateDir struct {
	path      string
	temporary bool
	lock      *os.File
}

// openStateDir locks the folder for this process. Without a path it creates a temporary folder, which stateDir.close
// removes.
func openStateDir(path string) (stateDir, error) {
	dir := stateDir{path: path}
	if path == "" {
		made, err := os.MkdirTemp("", "localcluster-")
		if err != nil {
			return dir, fmt.Errorf("make a state folder: %w", err)
		}
		dir.path, dir.temporary = made, true
	}
	absolute, err := filepath.Abs(dir.path)
	if err != nil {
		return dir, fmt.Errorf("state folder %s: %w", dir.path, err)
	}
	dir.path = absolute
	if err := os.MkdirAll(filepath.Join(dir.path, "log"), 0o700); err != nil {
		return dir, fmt.Errorf("create state folder %s: %w", dir.path, err)
	}
	dir.lock, err = os.OpenFile(filepath.Join(dir.path, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return dir, fmt.Errorf("lock state folder %s: %w", dir.path, err)
	}
	// The kernel releases the lock when the process ends, even if it is killed.
	if err := syscall.Flock(int(dir.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		dir.lock.Close()
		return dir, fmt.Errorf("state folder %s is in use by another localcluster: %w", dir.path, err)
	}
	return dir, nil
}

func (d stateDir) file(name string) string { return filepath.Join(d.path, name) }

func (d stateDir) log(component string) string {
	return filepath.Join(d.path, "log", component+".log")
}

// openLog opens a component's log file for appending.
func (d stateDir) openLog(component string) (*os.File, error) {
	file, err := os.OpenFile(d.log(component), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", component, err)
	}
	return file, nil
}

// close unlocks the folder, and removes a temporary folder.
func (d stateDir) close() error {
	d.lock.Close()
	if !d.temporary {
		return nil
	}
	if err := os.RemoveAll(d.path); err != nil {
		return fmt.Errorf("remove temporary state folder: %w", err)
	}
	return nil
}
