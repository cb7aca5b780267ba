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

// maxMessage bounds one message in bytes: the largest file that a build reads is 16 MiB, and what it makes is at most
// 16 MiB as JSON.
const maxMessage = 64 << 20

// order is what the process that asks says: build an app, or an answer to a question of that build.
type order struct {
	App     *rollout.App
	Ahead   []answer // to what the app was looked at for last time
	Answer  *answer
	Content *[]byte // of the file that was asked for, nil if it is too large to be kept
	Failed  bool    // the tree could not be read
	Key     []byte  // of the file whose locks were sent, nil if there is none
	Locked  string  // why there is none
}

// answer is what is at Path and, where that is not too much, what else is in its folder: most of it is asked for next.
type answer struct {
	Path   string
	Entry  rollout.Entry
	Found  bool
	Listed bool // Folder is all that is in the folder
	Folder []rollout.Entry
	Files  map[string][]byte // contents of small files of the folder, by id
}

// word is what the worker says: a question about the tree, or what came of the build. Of a folder the whole content is
// the answer's Folder.
type word struct {
	Lookup *string     // a path
	List   *string     // a folder
	Read   string      // the id of a file
	Locks  []sops.Lock // of an encrypted file, to have its data key: the keys stay with who asks
	Done   *outcome
}

// outcome is what came of a build.
type outcome struct {
	Render  *rollout.Render
	Invalid *rollout.InvalidError
	Err     string // of another kind, "" for none; where the tree could not be read, the asking side has the error
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
