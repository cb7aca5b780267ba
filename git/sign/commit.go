package sign

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ErrUnsigned means that a commit has no signature.
var ErrUnsigned = errors.New("the commit is not signed")

type signed struct {
	payload   []byte // the commit without its signature
	signature string // armored, SSH or OpenPGP
	when      time.Time
}

// split separates a commit into its signature (gpgsig) and the signed content, which excludes all headers gpgsig*. It
// refuses two signatures, because another program might verify the other signature.
func split(commit []byte) (s signed, err error) {
	head, body, ok := bytes.Cut(commit, []byte("\n\n"))
	if !ok {
		return s, errors.New("the commit object has no end of its header")
	}
	var payload, signature bytes.Buffer
	keep := &payload
	signatures := 0
	for line := range bytes.SplitSeq(head, []byte("\n")) {
		name, value, _ := bytes.Cut(line, []byte(" "))
		switch {
		case len(line) > 0 && line[0] == ' ':
			if keep == &signature {
				line = line[1:]
			}
		case string(name) == "gpgsig":
			keep, line = &signature, value
			signatures++
		case bytes.HasPrefix(name, []byte("gpgsig")):
			keep = nil
		default:
			keep = &payload
			if string(name) == "committer" {
				s.when = stamp(value)
			}
		}
		if keep != nil {
			keep.Write(line)
			keep.WriteByte('\n')
		}
	}
	switch {
	case signatures == 0:
		return s, ErrUnsigned
	case signatures > 1:
		return s, errors.New("the commit has more than one signature")
	case s.when.IsZero():
		return s, errors.New("the commit has no valid committer time")
	}
	payload.WriteByte('\n')
	payload.Write(body)
	s.payload, s.signature = payload.Bytes(), signature.String()
	return s, nil
}

func stamp(value []byte) time.Time {
	i := bytes.LastIndexByte(value, '>')
	if i < 0 {
		return time.Time{}
	}
	fields := strings.Fields(string(value[i+1:]))
	if len(fields) == 0 {
		return time.Time{}
	}
	seconds, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil || seconds <= 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}

// Insert adds an armored signature after the last header, as git does.
func Insert(commit []byte, signature string) ([]byte, error) {
	head, body, ok := bytes.Cut(commit, []byte("\n\n"))
	if !ok || strings.TrimSpace(signature) == "" {
		return nil, fmt.Errorf("cannot add a signature of %d bytes to a commit of %d bytes", len(signature), len(commit))
	}
	var out bytes.Buffer
	out.Write(head)
	out.WriteString("\ngpgsig ")
	out.WriteString(strings.ReplaceAll(strings.TrimRight(signature, "\n"), "\n", "\n "))
	out.WriteString("\n\n")
	out.Write(body)
	return out.Bytes(), nil
}

// Policy holds the accepted keys. If a field is nil, no key of its format is accepted.
type Policy struct {
	SSH     *Signers
	OpenPGP *Keyring
}

// Verify returns a commit's signer: the principal of an SSH key, or the user id and fingerprint of an OpenPGP key.
// Without a signature, the error is ErrUnsigned.
func (p Policy) Verify(commit []byte) (signer string, err error) {
	c, err := split(commit)
	if err != nil {
		return "", err
	}
	switch {
	case strings.HasPrefix(c.signature, "-----BEGIN "+sshType):
		if p.SSH == nil {
			return "", errors.New("it is signed with SSH, and no SSH keys are trusted")
		}
		return p.SSH.check(c)
	case strings.HasPrefix(c.signature, "-----BEGIN PGP SIGNATURE"):
		if p.OpenPGP == nil {
			return "", errors.New("it is signed with OpenPGP, and no OpenPGP keys are trusted")
		}
		return p.OpenPGP.check(c)
	}
	return "", errors.New("its signature is neither SSH nor OpenPGP")
}
