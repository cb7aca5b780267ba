// Package experiment builds a canary experiment's objects: a Deployment and any Service for each template.
package experiment
