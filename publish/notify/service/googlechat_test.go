package service

import (
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/publish/notify"
)

// TestAddressOfGoogleChat checks the error about an invalid webhook URL. The URL is secret, so the error must not contain it.
func TestAddressOfGoogleChat(t *testing.T) {
	err := sendGoogleChat(t.Context(), &session{values: map[string]string{"url": "https://chat.example.com/%zz?key=s3cret"}}, notify.Message{})
	compare.Check(t, "the url is not an address", err.Error())
}
