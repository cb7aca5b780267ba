package status

import (
	"cmp"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// releaseOf returns a release for display, or nil. A record of an older gitrollout has no images, so the images come
// from the commit's render.
func releaseOf(in strategies.Input, r *rollout.Release) *Release {
	if r == nil {
		return nil
	}
	images := r.Images
	for _, render := range []*rollout.Render{in.Source, in.Head.Render} {
		if len(images) == 0 && render != nil && render.Commit.ID == r.Commit {
			images = render.Images()
		}
	}
	return &Release{Images: images, Hash: r.Hash, Commit: r.Commit, Author: r.Author, Subject: r.Subject, Since: r.Since,
		Fast: r.Fast}
}

// imagesText returns images in short form, or "". If the other version has another tag, the text shows both tags:
// "web:v1 → v2".
func imagesText(images, other []string) string {
	names := rollout.Mapped(rollout.ShownImages(other, images), rollout.ShortImage)
	return strings.Join(rollout.Mapped(rollout.ShownImages(images, other), func(image string) string {
		short := rollout.ShortImage(image)
		name, tag := cutTag(short)
		for _, from := range names {
			if was, _ := cutTag(from); was == name && from != short && tag != "" {
				return from + " → " + tag
			}
		}
		return short
	}), ", ")
}

func cutTag(image string) (name, tag string) {
	if i := strings.IndexAny(image, ":@"); i >= 0 {
		return image[:i], image[i+1:]
	}
	return image, ""
}

// Newest returns the release in flight or, without one, the stable version. For an app without stages, it returns the
// applied commit.
func (a App) Newest() *Release {
	newest := cmp.Or(a.Release, a.Stable)
	if c := a.Source; newest == nil && c != nil {
		return &Release{Images: a.Images, Commit: c.ID, Author: c.Author, Subject: c.Subject, Since: c.When}
	}
	return newest
}

// ImagesText returns the newest version's images. During a release, it also shows stable's tags.
func (a App) ImagesText() string {
	return a.ImagesBeside(cmp.Or(a.Newest(), &Release{}).Images)
}

// ImagesBeside returns images in short form, and stable's tags that differ.
func (a App) ImagesBeside(images []string) string {
	return imagesText(images, cmp.Or(a.Stable, &Release{}).Images)
}
