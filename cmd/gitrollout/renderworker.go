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

// workerIdle is how long a process that renders is kept without work.
const workerIdle = 10 * time.Minute

// renderers is how many apps are rendered at once: one for each CPU, and two where there is one, so that an app
// which takes all the time it may does not hold up the others.
func renderers() int { return max(2, runtime.GOMAXPROCS(0)) }

// newWorkers makes the processes that render: this program, with nothing of its environment.
func newWorkers() *worker.Pool {
	return worker.NewPool(worker.Options{Most: renderers(), Idle: workerIdle, Command: func(memory int64) *exec.Cmd {
		program := "/proc/self/exe" // also after the file was replaced by another version's
		if _, err := os.Stat(program); err != nil {
			program, _ = os.Executable() // or else it says so when it is started
		}
		cmd := exec.Command(program, "render-worker", strconv.FormatInt(memory, 10))
		cmd.Args[0], cmd.Dir = "gitrollout", "/" // what every machine has: an image may have no other folder
		return cmd
	}})
}

// newRenderer makes a Renderer that knows the metric providers' fields, and renders in a command's workers. The log,
// if there is one, is told which of them were given up.
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

// newOpener is newRenderer for who applies: it opens encrypted files.
func newOpener(s streams, log *slog.Logger, unlock worker.Unlock) *render.Renderer {
	if s.workers == nil {
		return render.New(render.InProcess{CheckProvider: provider.Check, Unlock: unlock})
	}
	s.workers.Unlock = unlock
	return newRenderer(s, log)
}

// newRenderWorker is what a process that renders runs; its argument is what memory it may have, in bytes.
func newRenderWorker(s streams) *cobra.Command {
	return &cobra.Command{
		Use: "render-worker BYTES", Short: "Render for another gitrollout", Hidden: true, Args: exactlyOne("number of bytes"),
		RunE: func(_ *cobra.Command, args []string) error {
			memory, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil {
				return usagef("%q is not a number of bytes", args[0])
			}
			signal.Ignore(os.Interrupt) // which is for who asks
			os.Stdout = os.Stderr       // nobody else writes between the messages
			if err := worker.Limit(memory); err != nil {
				return err
			}
			return worker.Serve(s.in, s.out, func(unlock worker.Unlock) render.Builder {
				return render.InProcess{CheckProvider: provider.Check, Unlock: unlock}
			}, func() { os.Exit(0) })
		},
	}
}
