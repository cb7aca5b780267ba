package main

import (
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/analysis/provider"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/render/worker"
)

const workerIdle = 10 * time.Minute

// newWorkers returns the pool of render processes, which run this program with an empty environment. The pool has one
// process per CPU, but at least two, so that a slow app does not block all others.
func newWorkers() *worker.Pool {
	most := max(2, runtime.GOMAXPROCS(0))
	return worker.NewPool(worker.Options{Most: most, Idle: workerIdle, Command: func(memory int64) *exec.Cmd {
		program := "/proc/self/exe" // valid even after a new version has replaced the file
		if _, err := os.Stat(program); err != nil {
			program, _ = os.Executable() // on an error, the path is empty, and the start of the process fails
		}
		cmd := exec.Command(program, "render-worker", strconv.FormatInt(memory, 10))
		cmd.Args[0], cmd.Dir = "gitrollout", "/" // an image may have no folder except "/"
		return cmd
	}})
}

// newRenderer returns a Renderer. It uses the command's worker processes if there are any, and logs failed workers.
func newRenderer(s streams, log *slog.Logger) *render.Renderer {
	if s.workers == nil {
		return render.New(render.InProcess{CheckProvider: provider.Check})
	}
	if log != nil {
		s.workers.Trouble = func(app, cause string, stack []byte) {
			log.Warn("a process that renders was given up", "app", app, "cause", cause, "stack", string(stack))
		}
	}
	return render.New(s.workers)
}

// newOpener returns a Renderer for a reconciler. The function unlock returns the data keys of encrypted files.
func newOpener(s streams, log *slog.Logger, unlock worker.Unlock) *render.Renderer {
	if s.workers == nil {
		return render.New(render.InProcess{CheckProvider: provider.Check, Unlock: unlock})
	}
	s.workers.Unlock = unlock
	return newRenderer(s, log)
}

// newRenderWorker returns the command that a render process runs. The argument is the memory limit in bytes.
func newRenderWorker(s streams) *cobra.Command {
	return &cobra.Command{
		Use: "render-worker BYTES", Short: "Render for another gitrollout", Hidden: true, Args: exactlyOne("number of bytes"),
		RunE: func(_ *cobra.Command, args []string) error {
			memory, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil {
				return usagef("%q is not a number of bytes", args[0])
			}
			signal.Ignore(os.Interrupt) // the signal is for the parent process
			os.Stdout = os.Stderr       // only messages to the parent go to standard output
			if err := worker.Limit(memory); err != nil {
				return err
			}
			return worker.Serve(s.in, s.out, func(unlock worker.Unlock) render.Builder {
				return render.InProcess{CheckProvider: provider.Check, Unlock: unlock}
			}, func() { os.Exit(0) })
		},
	}
}
