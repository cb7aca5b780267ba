package gittest

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"gitrollout.dev/gitrollout/internal/testbin"
)

// SSHOptions configures Repo.SSH.
type SSHOptions struct {
	// NoProtocolV2 refuses the GIT_PROTOCOL variable, like an sshd without AcceptEnv.
	NoProtocolV2 bool
}

// SSH serves the repository over SSH with a new host key. The server accepts one user key (Server.KeyFile) and runs
// git-upload-pack and git-receive-pack.
func (r *Repo) SSH(opts SSHOptions) *Server {
	r.t.Helper()
	dir := r.t.TempDir()
	host, _ := r.newKey(filepath.Join(dir, "host"))
	user, keyFile := r.newKey(filepath.Join(dir, "user"))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	r.check("ssh", err)
	known := knownhosts.Line([]string{knownhosts.Normalize(l.Addr().String())}, host.PublicKey()) + "\n"
	knownFile := filepath.Join(dir, "known_hosts")
	r.check("ssh", os.WriteFile(knownFile, []byte(known), 0o600))
	config := &ssh.ServerConfig{
		PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if !bytes.Equal(key.Marshal(), user.PublicKey().Marshal()) {
				return nil, fmt.Errorf("unknown key")
			}
			return nil, nil
		},
	}
	config.AddHostKey(host)
	s := &Server{URL: "ssh://git@" + l.Addr().String() + r.Bare, KnownHosts: knownFile, KeyFile: keyFile}
	var open sync.Map // the connections, which stop closes
	s.stop = sync.OnceFunc(func() {
		_ = l.Close()
		open.Range(func(conn, _ any) bool { _ = conn.(net.Conn).Close(); return true })
	})
	r.t.Cleanup(s.stop)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			open.Store(conn, true)
			s.mu.Lock()
			s.requests = append(s.requests, "ssh")
			s.mu.Unlock()
			go func() {
				serveSSH(conn, config, opts)
				open.Delete(conn)
				_ = conn.Close()
			}()
		}
	}()
	return s
}

// NewKeyFile writes a new private key that no server accepts, and returns its path. The path of the public key has the
// suffix .pub.
func (r *Repo) NewKeyFile() string {
	r.t.Helper()
	_, file := r.newKey(filepath.Join(r.t.TempDir(), "key"))
	return file
}

func (r *Repo) newKey(file string) (ssh.Signer, string) {
	r.t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	r.check("key", err)
	block, err := ssh.MarshalPrivateKey(private, "gittest")
	r.check("key", err)
	r.check("key", os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	signer, err := ssh.NewSignerFromKey(private)
	r.check("key", err)
	r.check("key", os.WriteFile(file+".pub", ssh.MarshalAuthorizedKey(signer.PublicKey()), 0o600))
	return signer, file
}

func serveSSH(conn net.Conn, config *ssh.ServerConfig, opts SSHOptions) {
	server, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	defer server.Close()
	go ssh.DiscardRequests(requests)
	for c := range channels {
		if c.ChannelType() != "session" {
			_ = c.Reject(ssh.UnknownChannelType, "sessions only")
			continue
		}
		channel, requests, err := c.Accept()
		if err != nil {
			return
		}
		go serveSession(channel, requests, opts)
	}
}

// serveSession serves the requests of one session. It accepts the variable GIT_PROTOCOL, and the execution of one Git service.
func serveSession(channel ssh.Channel, requests <-chan *ssh.Request, opts SSHOptions) {
	env := Env()
	for req := range requests {
		switch req.Type {
		case "env":
			var v struct{ Name, Value string }
			ok := ssh.Unmarshal(req.Payload, &v) == nil && v.Name == "GIT_PROTOCOL" && !opts.NoProtocolV2
			if ok {
				env = append(env, v.Name+"="+v.Value)
			}
			_ = req.Reply(ok, nil)
		case "exec":
			var v struct{ Command string }
			err := ssh.Unmarshal(req.Payload, &v)
			service, path, found := strings.Cut(v.Command, " ")
			service = strings.TrimPrefix(service, "git-")
			if err != nil || !found || (service != "upload-pack" && service != "receive-pack") {
				_ = req.Reply(false, nil)
				continue
			}
			_ = req.Reply(true, nil)
			status := runService(channel, env, service, strings.Trim(path, "'"))
			_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))
			_ = channel.Close()
		default:
			_ = req.Reply(false, nil)
		}
	}
}

func runService(channel ssh.Channel, env []string, service, path string) uint32 {
	cmd := exec.Command("git", service, path)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, channel, channel.Stderr()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return 1
	}
	if err := cmd.Start(); err != nil {
		return 1
	}
	go func() {
		_, _ = io.Copy(stdin, channel)
		_ = stdin.Close()
	}()
	if err := cmd.Wait(); err != nil {
		return 128
	}
	return 0
}

// Daemon serves the repository with git daemon (git://).
func (r *Repo) Daemon() *Server {
	r.t.Helper()
	for range 5 {
		port, err := testbin.FreePort()
		r.check("git daemon", err)
		// git-daemon runs without the wrapper git, so that stop's signal reaches git-daemon itself.
		cmd := exec.Command(r.program("git-daemon"), "--reuseaddr",
			"--listen=127.0.0.1", "--port="+strconv.Itoa(port), "--base-path="+filepath.Dir(r.Bare),
			"--export-all", "--enable=receive-pack", "--informative-errors")
		cmd.Env = Env()
		r.check("git daemon", cmd.Start())
		exited := make(chan struct{})
		go func() { _ = cmd.Wait(); close(exited) }()
		stop := sync.OnceFunc(func() { _ = cmd.Process.Kill(); <-exited })
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		if listening(addr, exited) {
			r.t.Cleanup(stop)
			return &Server{URL: "git://" + addr + "/" + filepath.Base(r.Bare), stop: stop}
		}
		stop()
	}
	r.t.Fatalf("gittest: git daemon does not listen")
	return nil
}

// listening waits until a server accepts connections at addr. It returns false if the server exits, or after 5 seconds.
func listening(addr string, exited <-chan struct{}) bool {
	for range 500 {
		if conn, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
			_ = conn.Close()
			return true
		}
		select {
		case <-exited:
			return false
		case <-time.After(10 * time.Millisecond):
		}
	}
	return false
}
