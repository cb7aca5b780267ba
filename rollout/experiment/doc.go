// Package experiment builds a canary experiment's Deployments and Services.
package experiment
