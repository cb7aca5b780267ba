// Package plan predicts a change's effect before users push: apps, objects, and stages. Its types are the JSON of
// "gitrollout plan": fields may be added, not removed. The package reads neither Git nor a clock.
package plan
