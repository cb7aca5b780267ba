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

// maxMessage bounds one message in bytes: a build's largest file, and its result as JSON, are at most 16 MiB.
const maxMessage = 64 << 20

// order is a message to a worker: an app to build, or the response to its request.
type order struct {
	App     *rollout.App
	Ahead   []answer // responses for the paths that the app requested last time
	Answer  *answer
	Content *[]byte // of the requested file, nil if it is too large
	Failed  bool    // the tree could not be read
	Key     []byte  // of the file whose locks were sent, nil without one
	Locked  string  // why there is no key
}

// answer is the entry at Path and, if small, its folder's rest, usually requested next.
type answer struct {
	Path   string
	Entry  rollout.Entry
	Found  bool
	Listed bool // Folder is the whole content of the folder
	Folder []rollout.Entry
	Files  map[string][]byte // contents of small files of the folder, by id
}

// word is a worker's message: a request about the tree, or the build's result. List is answered by a whole Folder.
type word struct {
	Lookup *string     // a path
	List   *string     // a folder
	Read   string      // the id of a file
	Locks  []sops.Lock // of an encrypted file, to request its data key: the parent has the keys
	Done   *outcome
}

// outcome is the result of a build.
type outcome struct {
	Render  *rollout.Render
	Invalid *rollout.InvalidError
	Err     string // another error, "" for none; the parent has the error of an unreadable tree
	Looked  render.Looked

	Panic string // "" for none
	Stack []byte
}

// send writes one message: its length in four bytes, and its bytes.
func send(to io.Writer, message any) error {
	body, err := encode(message)
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

// receive reads one message.
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
