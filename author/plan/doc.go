// Package plan predicts the effect of a change of the users' branch before its push: changed apps and objects, and each
// release's stages with pods and times. Changes that cannot be staged have the reason. Its types are the JSON of
// gitrollout plan; fields are only ever added.
//
// It is pure, with both renders, the record and the time as inputs. Package strategies predicts a release;
// cmd/gitrollout renders both sides and prints the result.
package plan
