// Package experiment builds the objects of a canary experiment: a Deployment and an optional Service for each template.
package experiment
