package main

import (
	"log/slog"
	"net/http"
	"time"
)

// newServer bounds what a connection may cost, whoever makes it. What is wrong
// with connections is told at the level of debugging.
func newServer(handler http.Handler, log slog.Handler) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(log, slog.LevelDebug),
	}
}
