package wire

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/crypto/ssh/knownhosts"
)

type sshDialer struct {
	remote Remote
	addr   string
	known  string // path of known_hosts
	auth   Auth
	signer Parsed[ssh.Signer]
}

// newSSHDialer reads the files, so that a missing file prevents gitrollout's start.
func newSSHDialer(remote Remote, auth Auth) (*sshDialer, error) {
	d := &sshDialer{remote: remote, addr: remote.hostPort("22"), known: auth.KnownHosts, auth: auth}
	d.remote.user = cmp.Or(remote.user, "git")
	if d.known == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, fmt.Errorf("ssh: known_hosts: %w", err)
		}
		d.known = filepath.Join(home, ".ssh", "known_hosts")
	}
	if _, err := d.hosts(); err != nil {
		return nil, err
	}
	_, err := d.readKey()
	return d, err
}

func (d *sshDialer) hosts() (ssh.HostKeyCallback, error) {
	check, err := knownhosts.New(d.known)
	if err != nil {
		return nil, fmt.Errorf(
			"ssh: known_hosts cannot be read (get the server's key with ssh-keyscan, and check it): %w", err)
	}
	return check, nil
}

// readKey returns the key, or nil if the agent has the key. It decrypts only a changed file, because decryption is
// slow.
func (d *sshDialer) readKey() (ssh.Signer, error) {
	if d.auth.SSHKeyFile == "" {
		return nil, nil
	}
	files := []File{{"ssh key", d.auth.SSHKeyFile}}
	return d.signer.Read(files, func(data [][]byte, _ ssh.Signer) (ssh.Signer, error) {
		key := data[0]
		if len(key) == 0 {
			return nil, fmt.Errorf("ssh key: %s is empty", d.auth.SSHKeyFile)
		}
		signer, err := ssh.ParsePrivateKey(key)
		if locked := new(ssh.PassphraseMissingError); errors.As(err, &locked) && d.auth.SSHPassphrase != "" {
			signer, err = ssh.ParsePrivateKeyWithPassphrase(key, []byte(d.auth.SSHPassphrase))
		}
		if err != nil {
			return nil, fmt.Errorf("ssh key: %w", err)
		}
		return signer, nil
	})
}

// methods returns the authentication methods, and a closer for the SSH agent. Each dial connects to the agent, because
// the agent may restart.
func (d *sshDialer) methods() ([]ssh.AuthMethod, io.Closer, error) {
	signer, err := d.readKey()
	if err != nil {
		return nil, nil, err
	}
	if signer != nil {
		return []ssh.AuthMethod{ssh.PublicKeys(signer)}, io.NopCloser(nil), nil
	}
	socket := os.Getenv("SSH_AUTH_SOCK")
	if socket == "" {
		return nil, nil, fmt.Errorf("%w: no ssh key is configured and no ssh agent runs (SSH_AUTH_SOCK)", ErrAuth)
	}
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: ssh agent: %w", ErrAuth, err)
	}
	return []ssh.AuthMethod{ssh.PublicKeysCallback(agent.NewClient(conn).Signers)}, conn, nil
}

func (d *sshDialer) dial(ctx context.Context, service string) (*stream, error) {
	methods, closer, err := d.methods()
	if err != nil {
		return nil, err
	}
	defer closer.Close()
	check, err := d.hosts()
	if err != nil {
		return nil, err
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", d.addr)
	if err != nil {
		return nil, err
	}
	unwatch := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer unwatch()
	client, err := d.handshake(conn, methods, check)
	if err != nil {
		_ = conn.Close()
		return nil, errors.Join(ctx.Err(), err)
	}
	s, err := d.start(client, service)
	if err != nil {
		_ = client.Close()
		return nil, errors.Join(ctx.Err(), err)
	}
	return s, nil
}

func (d *sshDialer) handshake(conn net.Conn, methods []ssh.AuthMethod, check ssh.HostKeyCallback) (*ssh.Client, error) {
	var keyErr error
	algorithms := d.hostKeyAlgorithms(check)
	if len(algorithms) == 0 {
		return nil, fmt.Errorf("%w: %s is not in %s", ErrAuth, knownhosts.Normalize(d.addr), d.known)
	}
	config := &ssh.ClientConfig{
		User: d.remote.user, Auth: methods, HostKeyAlgorithms: algorithms, ClientVersion: "SSH-2.0-gitrollout",
		HostKeyCallback: func(host string, remote net.Addr, key ssh.PublicKey) error {
			if err := check(host, remote, key); err != nil {
				keyErr = fmt.Errorf("%w: the host key of %s (%s %s) does not match %s", ErrAuth,
					knownhosts.Normalize(d.addr), key.Type(), ssh.FingerprintSHA256(key), d.known)
			}
			return keyErr
		},
	}
	c, channels, requests, err := ssh.NewClientConn(conn, d.addr, config)
	if keyErr != nil {
		return nil, keyErr
	}
	if err != nil {
		return nil, err
	}
	return ssh.NewClient(c, channels, requests), nil
}

// hostKeyAlgorithms returns the algorithms of the host's known keys. With other algorithms, the server might send an
// unknown key, which looks like an attack.
func (d *sshDialer) hostKeyAlgorithms(check ssh.HostKeyCallback) (algorithms []string) {
	nobody, _ := ssh.NewPublicKey(ed25519.PublicKey(make([]byte, ed25519.PublicKeySize)))
	var want *knownhosts.KeyError
	if !errors.As(check(d.addr, &net.TCPAddr{IP: net.IPv4zero}, nobody), &want) {
		return nil
	}
	for _, known := range want.Want {
		if kind := known.Key.Type(); kind == ssh.KeyAlgoRSA {
			algorithms = append(algorithms, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
		} else {
			algorithms = append(algorithms, kind)
		}
	}
	return algorithms
}

func (d *sshDialer) start(client *ssh.Client, service string) (*stream, error) {
	session, err := client.NewSession()
	if err != nil {
		return nil, err
	}
	if service == uploadPack {
		// If the server refuses this variable, it uses version 0.
		_ = session.Setenv("GIT_PROTOCOL", "version=2")
	}
	in, err := session.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := session.StdoutPipe()
	if err != nil {
		return nil, err
	}
	stderr := &tail{}
	session.Stderr = stderr
	if err := session.Start(service + " '" + strings.ReplaceAll(d.remote.path, "'", `'\''`) + "'"); err != nil {
		return nil, err
	}
	wait := sync.OnceFunc(func() { _ = session.Wait() })
	return &stream{
		in: out, out: in,
		end:    in.Close,
		close:  func() { _ = client.Close() },
		stderr: func() string { _ = in.Close(); wait(); return stderr.String() },
	}, nil
}
