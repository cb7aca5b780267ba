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

// newWorkers returns a pool of render processes with an empty environment. There is one process per CPU but at least
// two, so that a slow app does not delay others.
func newWorkers() *worker.Pool {
	most := max(2, runtime.GOMAXPROCS(0))
	return worker.NewPool(worker.Options{Most: most, Idle: 10 * time.Minute, Command: func(memory int64) *exec.Cmd {
		program := "/proc/self/exe" // valid even after an update of the program's file
		if _, err := os.Stat(program); err != nil {
			program, _ = os.Executable() // if it fails, the process cannot start
		}
		cmd := exec.Command(program, "render-worker", strconv.FormatInt(memory, 10))
		cmd.Args[0], cmd.Dir = "gitrollout", "/" // a container image may have no other folder
		return cmd
	}})
}

func newRenderer(s streams) *render.Renderer {
	if s.workers == nil {
		return render.New(render.InProcess{CheckProvider: provider.Check})
	}
	return render.New(s.workers)
}

func newOpener(s streams, log *slog.Logger, unlock worker.Unlock) *render.Renderer {
	if s.workers == nil {
		return render.New(render.InProcess{CheckProvider: provider.Check, Unlock: unlock})
	}
	s.workers.Unlock = unlock
	s.workers.Trouble = func(app, cause string, stack []byte) {
		log.Warn("a render process failed", "app", app, "cause", cause, "stack", string(stack))
	}
	return render.New(s.workers)
}

func newRenderWorker(s streams) *cobra.Command {
	return &cobra.Command{
		Use: "render-worker BYTES", Short: "Render for another gitrollout", Hidden: true, Args: exactlyOne("number of bytes"),
		RunE: func(_ *cobra.Command, args []string) error {
			memory, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil {
				return usagef("%q is not a number of bytes", args[0])
			}
			signal.Ignore(os.Interrupt) // on Ctrl-C, the parent ends this process
			os.Stdout = os.Stderr       // standard output is for messages to the parent
			if err := worker.Limit(memory); err != nil {
				return err
			}
			return worker.Serve(s.in, s.out, func(unlock worker.Unlock) render.Builder {
				return render.InProcess{CheckProvider: provider.Check, Unlock: unlock}
			}, func() { os.Exit(0) })
		},
	}
}
