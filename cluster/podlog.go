package cluster

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"

	"gitrollout.dev/gitrollout/rollout"
)

// PodLogs reads pods' logs.
type PodLogs struct{ core *coreclient.CoreV1Client }

// LogsOf returns a reader with c's rights.
func LogsOf(c *Client) PodLogs { return PodLogs{c.kube.core} }

// LogSource is a container with its newest run.
type LogSource struct {
	Namespace, Pod, Container string

	Run   string // id of the current or last run, or ""
	Waits string // why there is no run
	Over  bool   // the container is not running
	Last  bool   // no other run follows
}

// Sources returns a pod's init containers and containers. If the pod is missing, or its uid or revision label (pin)
// differs, Sources returns nil.
func (l PodLogs) Sources(ctx context.Context, namespace, name, uid, pin string) ([]LogSource, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	p, err := l.core.Pods(namespace).Get(quiet(ctx), name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && (string(p.UID) != uid || pinOf(p) != pin):
		return nil, nil
	case err != nil:
		return nil, explainRead(err, rollout.Ref{Kind: "Pod", Namespace: namespace, Name: name}, "get", "pods")
	}
	return logSources(p), nil
}

func logSources(p *corev1.Pod) (all []LogSource) {
	statuses := slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses)
	finished := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	for i, container := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		s, _ := rollout.Find(statuses, func(s corev1.ContainerStatus) bool { return s.Name == container.Name })
		source := LogSource{Namespace: p.Namespace, Pod: p.Name, Container: container.Name, Over: s.State.Running == nil}
		was := cmp.Or(s.State.Terminated, s.LastTerminationState.Terminated) // the log of a crashed run stays readable
		switch {
		case s.State.Running != nil:
			source.Run = s.ContainerID
		case was != nil:
			source.Run = cmp.Or(was.ContainerID, s.ContainerID)
		case s.State.Waiting != nil:
			source.Waits = s.State.Waiting.Reason
		}
		isInit := i < len(p.Spec.InitContainers)
		isDone := isInit && s.State.Terminated != nil && s.State.Terminated.ExitCode == 0 && !isSidecar(p, s.Name)
		source.Last = source.Over && (finished || isDone)
		if source.Run == "" {
			source.Waits = cmp.Or(source.Waits, podStatus(p))
		}
		all = append(all, source)
	}
	return all
}

// LogRange selects lines of a log.
type LogRange struct {
	Since  time.Duration // maximum age; 0 for all
	After  time.Time     // only newer lines; zero for all
	Tail   int           // number of last lines; -1 for all
	Follow bool          // wait for new lines until the run ends
}

// Read calls the function line for each log line of the current or last run. It returns the last line's time (for
// LogRange.After), and the function's error.
func (l PodLogs) Read(ctx context.Context, s LogSource, r LogRange, line func(text string) error) (time.Time, error) {
	o := &corev1.PodLogOptions{Container: s.Container, Follow: r.Follow, Timestamps: true}
	if r.Tail >= 0 {
		o.TailLines = new(int64(r.Tail))
	}
	switch {
	case !r.After.IsZero():
		o.SinceTime = &metav1.Time{Time: r.After} // in whole seconds, so lines may repeat
	case r.Since > 0:
		o.SinceSeconds = new(int64((r.Since + time.Second - 1) / time.Second))
	}
	body, err := l.core.Pods(s.Namespace).GetLogs(s.Pod, o).Stream(quiet(ctx))
	if err != nil {
		return r.After, explainRead(err, rollout.Ref{Kind: "Pod", Namespace: s.Namespace, Name: s.Pod}, "get", "pods/log")
	}
	defer body.Close()
	return eachLine(body, r.After, line)
}

// eachLine calls the function line for each log line that has no time or is newer than `after`.
func eachLine(log io.Reader, after time.Time, line func(text string) error) (last time.Time, err error) {
	last = after
	in := bufio.NewReaderSize(log, 64<<10+len(time.RFC3339Nano)+1) // the kubelet splits lines at 16 KiB
	for {
		raw, err := in.ReadSlice('\n')
		text, more := string(raw), 0
		for errors.Is(err, bufio.ErrBufferFull) {
			raw, err = in.ReadSlice('\n')
			more += len(bytes.TrimSuffix(raw, []byte("\n")))
		}
		switch ended := errors.Is(err, io.EOF); {
		case err != nil && !ended:
			return last, err // the line is incomplete; the next Read gets it
		case text == "":
			return last, nil
		}
		text = strings.TrimSuffix(text, "\n")
		stamp, said, _ := strings.Cut(text, " ")
		at, invalid := time.Parse(time.RFC3339Nano, stamp)
		switch {
		case invalid != nil: // the kubelet's message
			said = text
		case !at.After(after):
			continue
		default:
			last = at
		}
		if more > 0 {
			said += fmt.Sprintf("… (%d more bytes)", more)
		}
		if err := line(said); err != nil {
			return last, err
		}
	}
}

func explainRead(err error, ref rollout.Ref, verb, resource string) error {
	explained := explain(err, ref, verb)
	e := new(Error)
	switch {
	case !errors.As(explained, &e):
	case apierrors.IsForbidden(err):
		e.Fix = fmt.Sprintf("allow this user to %s %s, as the ClusterRole view does", verb, resource)
	case apierrors.IsUnauthorized(err):
		e.Fix = "renew the credentials in your kubeconfig"
	}
	return explained
}
