package worker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/render/sops"
	"gitrollout.dev/gitrollout/rollout"
)

// maxMessage is in bytes. A file, or a build's result as JSON, has at most 16 MiB.
const maxMessage = 64 << 20

// order is a message to a worker: an app to build, or the response to a request.
type order struct {
	App      *rollout.App
	Ahead    []answer // responses for paths that the app will probably request
	Answer   *answer
	Content  []byte // the requested file
	TooLarge bool   // the requested file is too large to be sent
	Failed   bool   // the tree could not be read
	Key      []byte // the data key for the sent locks; nil if there is none
	Locked   string // the reason why there is no key
}

// answer is the entry at Path. It also has a small folder's entries, because a worker usually requests them next.
type answer struct {
	Path   string
	Entry  rollout.Entry
	Found  bool
	Listed bool // the field Folder lists all entries of the folder that contains Path
	Folder []rollout.Entry
	Files  map[string][]byte // contents of the folder's small files, by id
}

// word is a message from a worker: a request, or the build's result. Exactly one field is set.
type word struct {
	Lookup *string     // a path
	List   *string     // a folder; the answer has all its entries
	Read   string      // the id of a file
	Locks  []sops.Lock // the locks of an encrypted file; the answer has the file's data key
	Done   *outcome
}

type outcome struct {
	Render  *rollout.Render
	Invalid *rollout.InvalidError
	Err     string // any other error, or ""; the parent ignores it if the parent could not read the tree
	Looked  render.Looked

	Panic string // the text of a panic, or ""
	Stack []byte
}

// send writes the message's length in four bytes, then its bytes.
func send(to io.Writer, message any) error {
	body, err := encoding.Marshal(message)
	if err != nil {
		return err
	}
	if len(body) > maxMessage {
		return fmt.Errorf("%w: %d bytes", errTooLarge, len(body))
	}
	if _, err = to.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(body)))); err == nil {
		_, err = to.Write(body)
	}
	return err
}

var errTooLarge = errors.New("the message is too large")

func receive(from io.Reader, message any) error {
	var head [4]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n > maxMessage {
		return fmt.Errorf("%w: %d bytes", errTooLarge, n)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(from, body); err != nil {
		return err
	}
	return decode(body, message)
}
