package rollout

import (
	"slices"
	"strings"
)

const maxImages = 20

// Images returns at most maxImages different images of a release's pods, in the objects' order. Without Rollouts, all
// workloads count. Each workload's init containers come last.
func (r *Render) Images() []string {
	var all []string
	for _, w := range r.versioned() {
		for _, list := range []string{"containers", "initContainers"} {
			for _, container := range w.Maps("spec", "template", "spec", list) {
				if image := Printable(text(container, "image")); image != "" && !slices.Contains(all, image) {
					all = append(all, image)
				}
			}
		}
	}
	return all[:min(len(all), maxImages)]
}

// Labels returns the labels of the workloads that Images reads. The first workload's value wins.
func (r *Render) Labels() map[string]string {
	labels := map[string]string{}
	for _, w := range r.versioned() {
		of := w.Map("metadata", "labels")
		for key := range of {
			if _, has := labels[key]; !has {
				labels[key] = text(of, key)
			}
		}
	}
	return labels
}

func (r *Render) versioned() []Object {
	staged := r.Staged()
	if len(staged) == 0 {
		staged = r.Templates
	}
	refs := make(map[Ref]bool, len(staged))
	for w := range staged {
		refs[w.Ref()] = true
	}
	return slices.DeleteFunc(slices.Clone(r.Objects), func(o Object) bool { return !refs[o.Ref()] })
}

// ShownImages returns the images that the other version lacks. Without such images, or without another version, it
// returns the first image.
func ShownImages(images, other []string) []string {
	shown := slices.DeleteFunc(slices.Clone(images), func(image string) bool { return slices.Contains(other, image) })
	if len(shown) == 0 || len(other) == 0 {
		return images[:min(len(images), 1)]
	}
	return shown
}

// ShortImage returns "web:v2" for "ghcr.io/acme/web:v2", and "web@1f2e3d4" for "acme/web@sha256:1f2e3d4c5b…".
func ShortImage(image string) string {
	name, digest, _ := strings.Cut(image, "@")
	name = name[strings.LastIndex(name, "/")+1:]
	if digest == "" {
		return name
	}
	_, hex, _ := strings.Cut(digest, ":")
	return name + "@" + hex[:min(len(hex), 7)]
}
