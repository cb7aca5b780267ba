// Package experiment builds the objects of a canary's experiment: a Deployment for each template and, if requested, a
// Service.
package experiment
