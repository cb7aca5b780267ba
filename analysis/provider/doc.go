// Package provider gets a metric's result from a server or a Job. Fields are as in Argo Rollouts v1.10's
// AnalysisTemplate; comments mark other fields. Servers may be hostile: a measurement's time and a response's size are
// limited, and errors contain no credentials.
package provider
